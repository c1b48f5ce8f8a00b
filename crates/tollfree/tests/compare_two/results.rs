// SPDX-License-Identifier: MIT OR Apache-2.0
//! What two commands have in common, and in what they differ.

use serde_json::Value;
use toll_testkit::output::{assert_fails, stderr};
use toll_testkit::{Directory, schema};

use super::compare;

/// Ten times as long as [`FAST`].
const SLOW: &str = "sleep 0.5";
const FAST: &str = "sleep 0.05";

#[test]
fn the_second_is_judged_by_the_first() {
    let directory = Directory::empty();
    let got = schema::json(
        "compare",
        &compare(&directory, &["-n", "3", "-a", SLOW, "-b", FAST]),
    );
    assert_eq!(got["verdict"], "faster", "{got}");
    assert!(got["speedup"]["median"].as_f64().unwrap() > 2.0, "{got}");
    assert_eq!(
        (&got["speedup_all"], &got["program"]),
        (&Value::Null, &SLOW.into())
    );
    let variants = got["variants"].as_array().unwrap();
    let field = |name: &str| {
        variants
            .iter()
            .map(|it| it[name].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(field("name"), ["a", "b"]);
    assert_eq!(field("meaning"), [SLOW, FAST]);
    assert_eq!(variants[1]["command"]["line"], FAST);
    assert_eq!(variants[1]["proven"], true);
    assert_eq!(
        variants[0]["runs"].as_array().unwrap().len(),
        4,
        "the first warms up"
    );
}

#[test]
fn a_slower_command_ends_with_its_own_code() {
    let directory = Directory::empty();
    let compare = |percent: &str| {
        let options = [
            "-n",
            "3",
            "-a",
            FAST,
            "-b",
            SLOW,
            "--fail-if-slower",
            percent,
        ];
        compare(&directory, &options)
    };
    let slower = compare("2%");
    assert_fails(&slower, 6, &["b is slower", "--fail-if-slower 2 "]);
    let got = schema::json("compare", &slower);
    assert_eq!(
        (&got["verdict"], &got["too_slow"]),
        (&"slower".into(), &true.into())
    );
    let allowed = compare("1900");
    assert!(allowed.status.success(), "{}", stderr(&allowed));
}

#[test]
fn one_program_in_two_environments() {
    let directory = Directory::empty();
    directory.executable("app", "#!/bin/sh\necho \"$1:$MODE:$LD_PRELOAD\" >> seen\n");
    let options = [
        "-n",
        "2",
        "--env-a",
        "MODE=one",
        "--env-b",
        "MODE=two words",
    ];
    let words = [&options[..], &["--", "./app", "x y"]].concat();
    let got = schema::json("compare", &compare(&directory, &words));
    assert_eq!(got["variants"][1]["command"]["env"]["MODE"], "two words");
    assert_eq!(
        got["variants"][1]["meaning"],
        "MODE='two words' ./app 'x y'"
    );
    let seen = directory.read("seen");
    let runs = |line: &str| seen.lines().filter(|it| *it == line).count();
    // No library of tollfree is in either.
    assert_eq!((runs("x y:one:"), runs("x y:two words:")), (3, 3), "{seen}");
}

#[test]
fn a_line_of_the_shell_is_one() {
    let directory = Directory::empty();
    let line = "printf '%s\\n' a b | sort -r; test \"$X\" = 1 && cat";
    directory.write("input", "from stdin\n");
    let words = ["--json", "compare", "-n", "1", "-a", line, "-b", line];
    let mut command =
        directory.tollfree(&[&words[..], &["--env-a", "X=1", "--env-b", "X=1"]].concat());
    let input = std::fs::File::open(directory.path("input")).unwrap();
    let output = command.stdin(input).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(schema::json("compare", &output)["output"]["state"], "same");
}

#[test]
fn output_that_differs_is_an_error_without_a_plan() {
    let directory = Directory::empty();
    let words = ["-n", "2", "-a", "echo old", "-b", "echo new"];
    let output = compare(&directory, &words);
    assert_fails(
        &output,
        1,
        &[
            "OUTPUT DIFFERS in variant b",
            "`old\\n` in the first run",
            "--any-output",
        ],
    );
    assert!(!stderr(&output).contains("plan"), "{}", stderr(&output));
    let accepted = compare(&directory, &[&words[..], &["--any-output"]].concat());
    assert!(accepted.status.success(), "{}", stderr(&accepted));
}

/// In text, what a and b are comes first, without control characters.
#[test]
fn the_text_names_the_commands() {
    let directory = Directory::empty();
    let hostile = "true '\u{1b}[2J'";
    let output = directory.run(&["compare", "-n", "1", "-a", "true", "-b", hostile]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("a: true\nb: true '\\u{1b}[2J'\n"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
}
