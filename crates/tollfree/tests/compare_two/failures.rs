// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands that fail, run for too long or are interrupted, and options that contradict.

use std::time::{Duration, Instant};

use toll_testkit::output::{assert_fails, stderr};
use toll_testkit::process::{interrupt, is_running, wait_until};
use toll_testkit::{Directory, schema};

use super::compare;

#[test]
fn a_run_that_fails_ends_the_comparison() {
    let directory = Directory::empty();
    let fails = "echo run >> runs; echo first >&2; echo no such key >&2; exit 3";
    let output = compare(&directory, &["-n", "5", "-a", "true", "-b", fails]);
    assert_fails(
        &output,
        5,
        &["b failed: exit status: 3", "  first", "  no such key"],
    );
    assert_eq!(directory.read("runs"), "run\n");
    assert!(output.stdout.is_empty());
}

#[test]
fn what_is_not_there_and_what_crashes_is_named() {
    let directory = Directory::empty();
    let missing = compare(&directory, &["-a", "./nowhere", "-b", "true"]);
    assert_fails(&missing, 5, &["a failed: exit status: 127", "nowhere"]);
    let crashes = compare(&directory, &["-a", "true", "-b", "sh -c 'kill -SEGV $$'"]);
    assert_fails(&crashes, 5, &["b failed: exit status: 139", "signal 11"]);
    let program = compare(&directory, &["--env-b", "X=1", "--", "./nowhere"]);
    assert_eq!(program.status.code(), Some(127), "{}", stderr(&program));
}

#[test]
fn what_contradicts_is_one_error() {
    let directory = Directory::with(&[("plan.txt", "")]);
    for (words, part) in [
        (&[][..], "what is compared is missing"),
        (&["-a", "touch ran"], "-a needs a second command"),
        (&["-b", "touch ran"], "-b needs"),
        (&["--", "touch", "ran"], "--plan PLAN"),
        (
            &["--plan", "plan.txt", "-a", "touch ran", "-b", "x"],
            "leave out -a",
        ),
        (
            &["-a", "touch ran", "-b", "x", "--env-b", "=1"],
            "is not NAME=VALUE",
        ),
        (
            &["-a", "touch ran", "-b", "x", "--markdown"],
            "--markdown and --json",
        ),
        (
            &["-a", "touch ran", "-b", "x", "--fail-if-slower", "2%%"],
            "percentage",
        ),
        (
            &["-a", "touch ran", "-b", "x", "--ready", "true"],
            "--workload",
        ),
    ] {
        let output = compare(&directory, words);
        assert_fails(&output, 2, &[part]);
        assert!(!directory.path("ran").exists(), "{words:?}");
    }
}

/// The shell waits for its command, so that nothing is left when it has ended.
#[test]
fn a_command_of_the_shell_ends_at_the_limit() {
    let directory = Directory::empty();
    let line = "sh -c 'echo $$ > mark; exec sleep 600'; touch survived";
    let begun = Instant::now();
    let output = compare(&directory, &["--within", "1s", "-a", line, "-b", "true"]);
    assert_fails(&output, 2, &["--within"]);
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
    let slept = directory.read("mark");
    assert!(!slept.is_empty() && !is_running(slept.trim()), "{slept}");
    assert!(!directory.path("survived").exists());
}

#[test]
fn ctrl_c_ends_the_command_of_the_shell() {
    let directory = Directory::empty();
    let line = "cd . && sh -c 'echo $$ > mark; exec sleep 600'";
    let mut command = directory.tollfree(&["--json", "compare", "-a", line, "-b", "true"]);
    let child = command.spawn().unwrap();
    wait_until("the command", || !directory.read("mark").is_empty());
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(schema::json("compare", &output)["complete"], false);
    assert!(!is_running(directory.read("mark").trim()));
}
