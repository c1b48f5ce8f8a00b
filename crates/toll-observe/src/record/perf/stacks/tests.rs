// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn frames(names: &[&str]) -> Vec<Option<String>> {
    let name = |name: &&str| (!name.is_empty()).then(|| (*name).to_owned());
    names.iter().map(name).collect()
}

/// The stacks as text, innermost frame first.
fn text(stacks: Stacks) -> Vec<String> {
    let one = |stack: &Stack| format!("{} {}", stack.frames.join(","), stack.misses);
    stacks.finish().iter().map(one).collect()
}

#[test]
fn equal_stacks_are_one_and_the_most_misses_come_first() {
    let mut stacks = Stacks::default();
    stacks.count(&frames(&["f", "main"]), 2.0);
    stacks.count(&frames(&["g", "main"]), 5.0);
    stacks.count(&frames(&["f", "main"]), 4.0);
    assert_eq!(text(stacks), ["f,main 6", "g,main 5"]);
}

#[test]
fn unnamed_frames_stay_within_and_not_at_the_outer_end() {
    let mut stacks = Stacks::default();
    stacks.count(&frames(&["f", "", "main", "", ""]), 1.0);
    stacks.count(&frames(&["", ""]), 1.0);
    assert_eq!(text(stacks), ["f,[unknown],main 1"]);
}

#[test]
fn the_number_of_stacks_is_limited_and_no_miss_is_lost() {
    let mut stacks = Stacks::default();
    for number in 0..MAX_STACKS + 10 {
        stacks.count(&frames(&[&format!("f{number}")]), 1.0);
    }
    stacks.count(&frames(&["f0"]), 1.0);
    let all = stacks.finish();
    assert_eq!(all.len(), MAX_STACKS + 1);
    assert_eq!(all[0].frames[0].as_ref(), OTHERS);
    assert_eq!((all[0].misses, all[1].misses), (10.0, 2.0));
}

#[test]
fn a_very_deep_stack_keeps_its_innermost_frames() {
    let mut stacks = Stacks::default();
    stacks.count(&frames(&["f"; 1000]), 1.0);
    assert_eq!(stacks.finish()[0].frames.len(), MAX_FRAMES);
}
