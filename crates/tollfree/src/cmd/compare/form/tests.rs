// SPDX-License-Identifier: MIT OR Apache-2.0

use clap::Parser;

use super::*;
use crate::cmd::{Cli, Command};

fn args(words: &[&str]) -> Args {
    let words = ["tollfree", "compare"].iter().chain(words);
    match Cli::try_parse_from(words).unwrap().command {
        Command::Compare(args) => args,
        other => panic!("{other:?}"),
    }
}

/// The two commands as text.
fn two(words: &[&str]) -> [String; 2] {
    match Form::of(&args(words)).unwrap() {
        Form::Two(a, b) => [a.text(), b.text()],
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_commands_with_their_variables() {
    let words = [
        "-a",
        "./a",
        "-b",
        "./b | sort",
        "--env-b",
        "X=1",
        "--env-b",
        "Y=",
    ];
    assert_eq!(two(&words), ["./a", "X=1 Y='' ./b | sort"]);
}

#[test]
fn one_command_in_two_environments() {
    let words = ["--env-a", "X=1", "--", "./app", "-n", "a b"];
    assert_eq!(two(&words), ["X=1 ./app -n 'a b'", "./app -n 'a b'"]);
    let words = ["-a", "./app", "--env-b", "X=a=b"];
    assert_eq!(two(&words), ["./app", "X=a=b ./app"]);
}

#[test]
fn a_plan_compares_one_program() {
    assert!(
        matches!(Form::of(&args(&["--plan", "p", "--", "x"])), Ok(Form::Plan(plan)) if plan == Path::new("p"))
    );
}

#[test]
fn what_is_missing_or_said_twice_is_named() {
    for (words, parts) in [
        (&[][..], &["missing", "-a", "--plan"][..]),
        (&["--", "x"], &["missing", "--plan", "--env-b"]),
        (&["-a", "x"], &["-a needs", "-b", "--env-b"]),
        (&["-b", "x"], &["-b needs", "-a"]),
        (&["--env-b", "X=1"], &["missing"]),
        (&["-b", "x", "--", "y"], &["-b needs", "-a"]),
        (&["-a", "x", "-b", "y", "--", "z"], &["-a CMD and -- CMD"]),
        (&["-a", " ", "-b", "y"], &["-a: the command is empty"]),
        (&["-a", "x", "-b", ""], &["-b: the command is empty"]),
        (&["--plan", "p"], &["--plan needs the program"]),
        (&["--plan", "p", "-a", "x", "-b", "y"], &["leave out -a"]),
        (&["--plan", "p", "--env-b", "X=1", "--", "y"], &["--env-b"]),
    ] {
        let error = Form::of(&args(words)).unwrap_err();
        assert!(matches!(error, UserError::Usage(_)), "{words:?}: {error}");
        let text = error.to_string();
        assert!(
            parts.iter().all(|part| text.contains(part)),
            "{words:?}: {text}"
        );
    }
}

#[test]
fn a_setting_has_a_name_and_a_value() {
    assert_eq!(setting(OsStr::new("A=b=c")), Ok(("A".into(), "b=c".into())));
    assert_eq!(setting(OsStr::new("A=")), Ok(("A".into(), "".into())));
    for wrong in ["", "A", "=b"] {
        assert!(setting(OsStr::new(wrong)).is_err(), "{wrong}");
    }
}
