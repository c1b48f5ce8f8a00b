// SPDX-License-Identifier: MIT OR Apache-2.0
//! The status of the program, and how it is found and executed.

use std::fs;
use std::os::unix::process::ExitStatusExt;

use toll_testkit::output::{stderr, stdout, text};
use toll_testkit::process::wait_until;

use crate::Fixture;

#[test]
fn every_exit_code_passes() {
    let fixture = Fixture::new();
    for code in 0..=255 {
        let plan = ["nothing.txt", "inside.txt"][code % 2];
        let status = fixture
            .run(plan, &["sh", "-c", &format!("exit {code}")])
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code as i32), "{plan}");
    }
}

#[test]
fn death_by_a_signal_passes() {
    let fixture = Fixture::new();
    for signal in [
        libc::SIGTERM,
        libc::SIGSEGV,
        libc::SIGKILL,
        libc::SIGABRT,
        libc::SIGQUIT,
        libc::SIGPIPE,
    ] {
        for (plan, mut command) in
            fixture.both(&["sh", "-c", &format!("kill -{signal} $$; sleep 9")])
        {
            let output = command.output().unwrap();
            assert_eq!(output.status.signal(), Some(signal), "{plan}");
            assert_eq!(stderr(&output), "", "{plan}");
        }
    }
    assert!(leftovers(&fixture).is_empty(), "{:?}", leftovers(&fixture));
}

/// Temporary files that were not removed.
fn leftovers(fixture: &Fixture) -> Vec<String> {
    let mut names = fixture.names();
    names.retain(|name| name.starts_with("tollfree-"));
    names
}

#[test]
fn a_core_is_only_the_programs_own() {
    let fixture = Fixture::new();
    let mut command = fixture.run("nothing.txt", &["sh", "-c", "ulimit -c 0; kill -SEGV $$"]);
    let status = command.status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGSEGV));
    assert!(!status.core_dumped());
}

#[test]
fn programs_that_exec_and_fork_are_followed_to_their_end() {
    let fixture = Fixture::new();
    for (plan, mut command) in fixture.both(&[
        "sh",
        "-c",
        "sh -c 'exit 3' || exec sh -c 'exec sh -c \"exit 9\"'",
    ]) {
        assert_eq!(command.status().unwrap().code(), Some(9), "{plan}");
    }
}

#[test]
fn a_daemon_outlives_tollfree() {
    let fixture = Fixture::new();
    for (plan, mut command) in fixture.both(&[
        "sh",
        "-c",
        "(sleep 0.4; echo done > daemon) </dev/null >/dev/null 2>&1 & exit 3",
    ]) {
        let _ = fs::remove_file(fixture.path("daemon"));
        assert_eq!(command.status().unwrap().code(), Some(3), "{plan}");
        assert!(
            !fixture.path("daemon").exists(),
            "{plan}: tollfree waited for the daemon"
        );
        wait_until("the daemon", || fixture.path("daemon").exists());
    }
}

#[test]
fn exec_failures_are_told_apart() {
    let fixture = Fixture::new();
    fixture.write("plain", "no program");
    fixture.executable("lost", b"#!/nonexistent/interpreter\n");
    let cases = [
        ("nonexistent-program", 127),
        ("./nonexistent-program", 127),
        ("", 127),
        ("./plain", 126),
        ("/", 126),
        ("./lost", 127),
        ("./plain/below", 127),
    ];
    for (name, code) in cases {
        for (plan, mut command) in fixture.both(&[name]) {
            let output = command.output().unwrap();
            assert_eq!(
                output.status.code(),
                Some(code),
                "{name} {plan}: {}",
                stderr(&output)
            );
            assert!(stderr(&output).starts_with("tollfree: "), "{name}");
        }
    }
}

#[test]
fn programs_are_looked_up_as_execvp_does() {
    let fixture = Fixture::new();
    fixture.write("first/tool", "not executable");
    fixture.executable("second/tool", b"#!/bin/sh\necho second $0 \"$@\"\n");
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        fixture.path("first").display(),
        fixture.path("second").display()
    );
    for (plan, mut command) in fixture.both(&["tool", "a b", ""]) {
        let output = command.env("PATH", &path).output().unwrap();
        let expected = format!("second {} a b \n", fixture.path("second/tool").display());
        assert_eq!(stdout(&output), expected, "{plan}");
    }
    // The shell executes a file without an interpreter line.
    fixture.executable("bare", b"echo bare\n");
    for (plan, mut command) in fixture.both(&["./bare"]) {
        assert_eq!(text(&command.output().unwrap().stdout), "bare\n", "{plan}");
    }
}

#[test]
fn the_programs_own_name_is_kept() {
    let fixture = Fixture::new();
    for (plan, mut command) in
        fixture.both(&["sh", "-c", "tr '\\0' ' ' < /proc/$$/cmdline | cut -c1-5"])
    {
        assert_eq!(text(&command.output().unwrap().stdout), "sh -c\n", "{plan}");
    }
}
