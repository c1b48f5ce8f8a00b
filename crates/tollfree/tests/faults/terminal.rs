// SPDX-License-Identifier: MIT OR Apache-2.0
//! The progress display on a terminal.

use std::io::Read;
use std::process::Stdio;

use toll_testkit::terminal::terminal;

use crate::place::{Place, has_simulator};

/// A program that touches enough memory to be recorded.
const TUNE: &str = "tune --within 60s --force -o out -- ./faulty gains runs 2000000";

/// The output of a command on a terminal until it ends.
fn shown(place: &Place, line: &str) -> String {
    let (mut ours, theirs) = terminal(24, 120);
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = place.tollfree(&words);
    // Without a type, a terminal is not drawn on.
    command.env("TERM", "xterm");
    command.stdout(Stdio::null()).stderr(theirs);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut shown = Vec::new();
    // Reading fails after the last user of the terminal closes it.
    let _ = ours.read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    String::from_utf8_lossy(&shown).into_owned()
}

/// The shares are printed before anything runs, then each step by its name.
#[test]
fn each_step_is_shown_after_the_shares() {
    let place = Place::new();
    let shown = shown(&place, TUNE);
    let (before, after) = shown
        .split_once("at most 1 min: ")
        .unwrap_or_else(|| panic!("{shown}"));
    assert!(!before.contains("quick look"), "{shown}");
    let (shares, after) = after.split_once('\n').unwrap();
    assert!(shares.contains("quick look 6.0 s, upper bound"), "{shares}");
    let mut rest = after;
    for step in [
        "quick look, at most",
        "upper bound, at most",
        "profile, at most",
        "comparison, at most",
    ] {
        let at = rest
            .find(step)
            .unwrap_or_else(|| panic!("no {step}: {shown}"));
        rest = &rest[at..];
    }
}

/// Progress is shown throughout, including the recording.
#[test]
fn progress_is_shown_while_a_run_is_recorded() {
    // The other sources are as fast as the program: nothing to show.
    if !has_simulator() {
        return;
    }
    let place = Place::new();
    let shown = shown(&place, TUNE);
    // The note is printed when the source is chosen, just before the recording begins.
    let after = shown.split("tollfree: recording with").nth(1);
    let after = after.unwrap_or_else(|| panic!("no recording: {shown}"));
    let meanwhile = after.split("begins").next().unwrap_or_default();
    let frames = meanwhile.matches(": recording").count();
    assert!(frames > 2, "{frames} times: {meanwhile:?}");
}
