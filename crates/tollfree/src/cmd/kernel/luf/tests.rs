// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn half_of_the_drains() {
    assert_eq!(drains_in_words(0, &[]), "none");
    let text = drains_in_words(10, &[(1, 4), (1024, 5), (2048, 1)]);
    assert_eq!(text, "10, half of them of at least 1,024 pages");
    let text = drains_in_words(2, &[(1, 2)]);
    assert_eq!(text, "2, half of them of at least 1 page");
}

#[test]
fn nothing_is_none() {
    assert_eq!(parts(&[("mm", 0)]), "none");
    assert_eq!(parts(&[("late_writer", 7), ("mm", 0)]), "late writer 7");
}
