// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::{Duration, UNIX_EPOCH};

use super::*;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn the_stamp_is_utc() {
    assert_eq!(stamp(at(0)), "19700101-000000");
    assert_eq!(stamp(at(951_782_399)), "20000228-235959");
    assert_eq!(stamp(at(951_782_400)), "20000229-000000");
    assert_eq!(stamp(at(1_763_715_600)), "20251121-090000");
    assert_eq!(stamp(at(1_767_225_599)), "20251231-235959");
}

#[test]
fn names_are_plain() {
    assert_eq!(plain("/usr/bin/xz"), "xz");
    assert_eq!(plain("a b;c"), "a_b_c");
    assert_eq!(plain(""), "program");
}

#[test]
fn two_runs_in_one_second_get_two_directories() {
    let parent = tempfile::tempdir().unwrap();
    let first = Directory::fresh(parent.path(), "xz", at(0)).unwrap();
    let second = Directory::fresh(parent.path(), "xz", at(0)).unwrap();
    assert_ne!(first.path(), second.path());
    assert!(second.path().ends_with("tollfree-xz-19700101-000000-2"));
}

#[test]
fn a_directory_with_something_in_it_needs_force() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("out");
    Directory::take(&path, false)
        .unwrap()
        .write("x", b"1")
        .unwrap();
    assert!(Directory::take(&path, false).is_err());
    assert!(Directory::take(&path, true).is_ok());
    assert!(Directory::take(&path.join("x"), true).is_err());
}
