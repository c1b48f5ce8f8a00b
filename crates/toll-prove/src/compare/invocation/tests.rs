// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn env(name: &str, value: &str) -> [(OsString, OsString); 1] {
    [(name.into(), value.into())]
}

#[test]
fn a_program_is_shown_as_the_shell_would_take_it() {
    let words = ["./a b", "-n", "3", "it's", ""].map(OsString::from);
    let text = Invocation::program(&words).text();
    assert_eq!(text, r"'./a b' -n 3 'it'\''s' ''");
}

#[test]
fn variables_come_before_the_command() {
    let line = Invocation::shell(OsStr::new("./a | sort"));
    let both = line.with_env(&env("MODE", "fast path"));
    assert_eq!(both.text(), "MODE='fast path' ./a | sort");
    assert_eq!(both.env(), env("MODE", "fast path"));
}

#[test]
fn no_control_character_reaches_the_terminal() {
    let line = Invocation::shell(OsStr::new("printf '\u{1b}[2J'\ntrue\t\u{7f}"));
    assert_eq!(line.text(), r"printf '\u{1b}[2J'\ntrue\t\u{7f}");
}

#[test]
fn the_shell_gets_the_line_unchanged() {
    let line = Invocation::shell(OsStr::new("echo \"$1\"\nexit 3"));
    let script = line.command()[2].to_str().unwrap();
    assert!(script.ends_with("; echo \"$1\"\nexit 3"), "{script}");
}
