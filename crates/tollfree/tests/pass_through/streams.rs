// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard streams and the terminal.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use toll_testkit::machine::has_program;
use toll_testkit::output::{stderr, stdout};
use toll_testkit::process::wait_until;
use toll_testkit::tool::tollfree;

use crate::{Fixture, feed, lines};

/// Bytes without a pattern (a linear congruential generator).
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn streams_pass_byte_for_byte() {
    let fixture = Fixture::new();
    let input = noise(1 << 20);
    for (plan, mut command) in fixture.both(&["cat"]) {
        let output = feed(&mut command, input.clone());
        assert!(output.stdout == input, "{plan}: stdout differs");
        assert_eq!(stderr(&output), "", "{plan}");
        assert_eq!(output.status.code(), Some(0), "{plan}");
    }
    for (plan, mut command) in fixture.both(&["sh", "-c", "cat >&2"]) {
        let output = feed(&mut command, input.clone());
        assert!(output.stderr == input, "{plan}: stderr differs");
        assert!(output.stdout.is_empty(), "{plan}");
    }
}

#[test]
fn a_closed_reader_ends_the_program_as_it_would_alone() {
    let fixture = Fixture::new();
    for (plan, mut command) in fixture.both(&["yes"]) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 2];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        assert_eq!(
            child.wait().unwrap().signal(),
            Some(libc::SIGPIPE),
            "{plan}"
        );
    }
}

#[test]
fn a_terminal_stays_a_terminal() {
    let fixture = Fixture::new();
    if !has_program("script") {
        eprintln!("skipped: no script(1)");
        return;
    }
    for plan in ["nothing.txt", "inside.txt"] {
        let inner = "test -t 0 && test -t 1 && test -t 2 && echo terminal; cut -d \" \" -f 5,8 /proc/self/stat";
        let output = in_terminal(&fixture, plan, inner, b"");
        assert!(output.contains("terminal"), "{plan}: {output}");
        let groups: Vec<&str> = output.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(
            groups[0], groups[1],
            "{plan}: the program is in the foreground: {output}"
        );
    }
}

#[test]
fn ctrl_c_arrives_once() {
    let fixture = Fixture::new();
    if !has_program("script") {
        eprintln!("skipped: no script(1)");
        return;
    }
    for plan in ["nothing.txt", "inside.txt"] {
        let inner = "trap \"echo INT >> got\" INT; echo > ready; n=0; while [ $n -lt 40 ]; do sleep 0.02; n=$((n+1)); done; exit 5";
        let _ = fs::remove_file(fixture.path("got"));
        let output = in_terminal(&fixture, plan, inner, b"\x03");
        assert_eq!(lines(&fixture, "got"), ["INT"], "{plan}: {output}");
    }
}

/// Runs a shell line under tollfree in its own terminal; types `keys` when the file `ready` exists.
fn in_terminal(fixture: &Fixture, plan: &str, line: &str, keys: &[u8]) -> String {
    let _ = fs::remove_file(fixture.path("ready"));
    let inner = format!(
        "{} run --plan {plan} -- sh -c '{line}'",
        tollfree().display()
    );
    let mut command = Command::new("script");
    command
        .args(["-qec", &inner, "/dev/null"])
        .current_dir(fixture.as_path());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    if !keys.is_empty() {
        wait_until("the program in the terminal", || {
            fixture.path("ready").exists()
        });
        stdin.write_all(keys).unwrap();
        stdin.flush().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    stdout(&output).replace('\r', "")
}
