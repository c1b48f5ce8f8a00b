// SPDX-License-Identifier: MIT OR Apache-2.0

use std::os::unix::fs::PermissionsExt;

use super::*;

fn words(text: &[&str]) -> Vec<OsString> {
    text.iter().map(OsString::from).collect()
}

#[test]
fn programs_are_left_alone() {
    let command = words(&["ls", "-l"]);
    let simulated = unwrap(&command).unwrap();
    assert_eq!(simulated.command, command);
    assert_eq!(simulated.note, None);
}

#[test]
fn shells_that_only_execute_are_looked_through() {
    for text in ["ls -l /tmp", "exec ls -l /tmp"] {
        let simulated = unwrap(&words(&["sh", "-c", text])).unwrap();
        assert_eq!(simulated.command, words(&["ls", "-l", "/tmp"]));
        assert!(simulated.note.is_some());
    }
    for text in [
        "ls | wc",
        "ls; ls",
        "A=1 ls",
        "echo hello",
        "ls *",
        "no-such-program-here",
    ] {
        let command = words(&["sh", "-c", text]);
        assert_eq!(unwrap(&command).unwrap().command, command, "{text}");
    }
}

#[test]
fn env_is_looked_through_with_its_settings() {
    let simulated = unwrap(&words(&["env", "A=1", "B=", "sh", "-c", "ls -l"])).unwrap();
    assert_eq!(simulated.command, words(&["ls", "-l"]));
    assert_eq!(
        simulated.env,
        [("A".into(), "1".into()), ("B".into(), "".into())]
    );
    let command = words(&["env", "-i", "ls"]);
    assert_eq!(unwrap(&command).unwrap().command, command);
}

#[test]
fn scripts_become_their_interpreters() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    let path_text = path.to_str().unwrap();
    for (line, expected) in [
        ("#!/bin/sh -e", vec!["/bin/sh", "-e", path_text, "x"]),
        ("#!/usr/bin/env sh", vec!["sh", path_text, "x"]),
        ("#!/usr/bin/env -S sh -e", vec!["sh", "-e", path_text, "x"]),
    ] {
        std::fs::write(&path, format!("{line}\n:\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let simulated = unwrap(&words(&[path_text, "x"])).unwrap();
        assert_eq!(simulated.command, words(&expected), "{line}");
    }
}
