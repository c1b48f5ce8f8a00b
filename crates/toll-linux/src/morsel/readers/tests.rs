// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const OTHER_GROUP: u32 = 8;

/// Readers of a file of group 7 below directories of (mode, group).
fn readers(directories: &[(u32, u32)], file: u32) -> u32 {
    let step = |(mode, group): (u32, u32)| Step {
        path: "/x".to_owned(),
        mode,
        group,
        obstacle: None,
    };
    let mut steps: Vec<Step> = directories.iter().copied().map(step).collect();
    steps.push(step((file, 7)));
    let readers = judge(&steps);
    let is_less = readers.mode() != file & 0o444;
    assert!(readers.why_not.is_none() || is_less, "{readers:?}");
    readers.mode()
}

#[test]
fn only_those_that_every_directory_lets_through() {
    let root = (0o755, 0);
    assert_eq!(readers(&[root], 0o644), 0o444);
    assert_eq!(readers(&[root, (0o700, 7)], 0o644), 0o400);
    assert_eq!(readers(&[root, (0o750, 7)], 0o644), 0o440);
    assert_eq!(readers(&[root, (0o750, OTHER_GROUP)], 0o644), 0o400);
    assert_eq!(readers(&[root, (0o711, OTHER_GROUP)], 0o644), 0o444);
    assert_eq!(readers(&[(0o700, 0), root], 0o644), 0o400);
    // A directory's group may be denied what others are allowed.
    assert_eq!(readers(&[root, (0o705, OTHER_GROUP)], 0o644), 0o400);
}

#[test]
fn only_those_that_the_file_lets_in() {
    let root = (0o755, 0);
    for (mode, copy) in [
        (0o600, 0o400),
        (0o640, 0o440),
        (0o440, 0o440),
        (0o444, 0o444),
        (0o604, 0o400),
        (0o004, 0o400),
        (0o666, 0o444),
    ] {
        assert_eq!(readers(&[root], mode), copy, "{mode:o}");
    }
}

#[test]
fn what_modes_do_not_show_keeps_it_private() {
    let step = |obstacle: Option<&str>| Step {
        path: "/x".to_owned(),
        mode: 0o755,
        group: 0,
        obstacle: obstacle.map(str::to_owned),
    };
    let steps = [step(None), step(Some("a list")), step(None)];
    let readers = judge(&steps);
    assert_eq!(readers.mode(), PRIVATE);
    assert_eq!(readers.why_not.as_deref(), Some("a list"));
}
