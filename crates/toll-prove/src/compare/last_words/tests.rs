// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn one_line_follows_on_the_same_line() {
    assert_eq!(last_words(""), "");
    assert_eq!(last_words("\n \n"), "");
    assert_eq!(last_words("no\n\n"), "; its last message: no");
}

#[test]
fn the_last_five_of_several_lines_are_shown_in_order() {
    let text: String = (1..=7).map(|n| format!("line {n}\n\n")).collect();
    let shown = last_words(&text);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "; its last messages:");
    assert_eq!((lines[1], lines[5]), ("  line 3", "  line 7"));
    assert_eq!(lines.len(), 6);
}

#[test]
fn a_line_is_cut_and_its_control_characters_are_escaped() {
    let shown = last_words(&format!("\u{1b}[31m{}\u{e9}", "\u{e9}".repeat(300)));
    assert!(
        shown.starts_with(r"; its last message: \u{1b}[31m"),
        "{shown}"
    );
    assert!(shown.ends_with("\u{e9}..."), "{shown}");
    assert!(shown.chars().count() < 250, "{shown}");
}
