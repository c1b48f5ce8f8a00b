// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::*;

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn lines_are_counted_from_the_end_that_the_file_has() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    append(&log, "old\nold\n");
    let mut lines = Lines::open(&log).unwrap();
    assert_eq!(lines.count().unwrap(), 0);
    append(&log, "one\ntwo\nhalf");
    assert_eq!(lines.count().unwrap(), 2);
    append(&log, " a line\n");
    assert_eq!(lines.count().unwrap(), 3);
}

#[test]
fn a_log_that_is_rotated_or_truncated_is_followed() {
    let place = tempfile::tempdir().unwrap();
    let log = place.path().join("log");
    append(&log, "old\n");
    let mut lines = Lines::open(&log).unwrap();
    append(&log, "last of the old one\n");
    fs::rename(&log, place.path().join("log.1")).unwrap();
    assert_eq!(lines.count().unwrap(), 1);
    append(&log, "first of the new one\nsecond\n");
    assert_eq!(lines.count().unwrap(), 3);
    fs::write(&log, "").unwrap();
    assert_eq!(lines.count().unwrap(), 3);
    append(&log, "x\n");
    assert_eq!(lines.count().unwrap(), 4);
    assert!(Lines::open(&place.path().join("none")).is_err());
}
