// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::proc::{Children, Stat};

/// Process 1 or a descendant, with numbers of faults of its own and of ended children.
fn process(pid: u32, parent: u32, started: u64, own: u64, children: u64) -> Process {
    let stat = Stat {
        name: "x".to_owned(),
        state: 'S',
        parent,
        is_kernel_thread: false,
        minor_faults: own,
        major_faults: 0,
        user_ticks: 0,
        system_ticks: 0,
        children: Children {
            minor_faults: children,
            ..Children::default()
        },
        start_ticks: started,
        resident_pages: 1,
        heap_start: 0,
    };
    let mut process = Process::new(pid, &stat);
    process.update(&stat, None);
    process
}

fn look(processes: &[Process]) -> ById {
    let all = processes.iter();
    all.map(|it| (it.pid, it.clone())).collect()
}

/// What process 1 inherits between two looks.
fn inherited(before: &[Process], now: &[Process]) -> u64 {
    let mut now = look(now);
    inherit(&look(before), &mut now);
    now[&1].inherited.minor
}

#[test]
fn a_child_between_two_looks_is_inherited_whole() {
    let before = [process(1, 0, 5, 10, 100)];
    assert_eq!(inherited(&before, &[process(1, 0, 5, 10, 170)]), 70);
}

#[test]
fn a_seen_child_leaves_what_it_used_afterwards() {
    let before = [process(1, 0, 5, 10, 100), process(2, 1, 6, 40, 3)];
    assert_eq!(inherited(&before, &[process(1, 0, 5, 10, 150)]), 7);
}

#[test]
fn the_seen_child_of_a_seen_child_is_subtracted_too() {
    let before = [
        process(1, 0, 5, 10, 0),
        process(2, 1, 6, 40, 0),
        process(3, 2, 7, 20, 0),
    ];
    // Both ended: 41 and 22 faults.
    assert_eq!(inherited(&before, &[process(1, 0, 5, 10, 63)]), 3);
}

/// Nothing is counted twice if the parent was looked at before it waited.
#[test]
fn a_late_wait_is_counted_in_the_next_look() {
    let before = look(&[process(1, 0, 5, 10, 0), process(2, 1, 6, 40, 0)]);
    let mut between = look(&[process(1, 0, 5, 10, 0)]);
    inherit(&before, &mut between);
    assert_eq!(between[&1].inherited.minor, 0);
    let mut now = between.clone();
    now.get_mut(&1).unwrap().children.minor = 45;
    inherit(&between, &mut now);
    assert_eq!(now[&1].inherited.minor, 5);
    assert_eq!(now[&1].expected, Used::default());
}

#[test]
fn a_child_of_a_parent_that_does_not_wait_is_expected_once() {
    let before = look(&[process(1, 0, 5, 10, 0), process(2, 1, 6, 40, 0)]);
    let mut one = look(&[process(1, 0, 5, 10, 0)]);
    inherit(&before, &mut one);
    let mut two = one.clone();
    inherit(&one, &mut two);
    assert_eq!(two[&1].expected, Used::default());
}

#[test]
fn another_process_with_the_id_inherits_only_its_own() {
    let before = [process(1, 0, 5, 10, 100), process(2, 1, 6, 40, 0)];
    assert_eq!(inherited(&before, &[process(1, 0, 9, 1, 4)]), 4);
}

#[test]
fn ids_in_a_circle_have_no_heir() {
    let before = [
        process(1, 0, 1, 0, 0),
        process(2, 3, 6, 4, 0),
        process(3, 2, 7, 4, 0),
    ];
    assert_eq!(inherited(&before, &[process(1, 0, 1, 0, 5)]), 5);
}
