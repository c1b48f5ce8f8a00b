// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals to tollfree and to the program.

use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use toll_testkit::machine::has_program;
use toll_testkit::process::{is_running, kill, kill_group, wait_until};
use toll_testkit::tool::tollfree;

use crate::{Fixture, lines, started};

/// A shell that counts the received signals in a file, and ends on SIGTERM.
const COUNTER: &str = r#"
    for s in HUP INT QUIT USR1 USR2 ALRM WINCH CONT TSTP; do trap "echo $s >> got" $s; done
    trap 'exit 42' TERM
    echo $$ > ready
    while :; do sleep 0.02; done
"#;

#[test]
fn signals_to_tollfree_are_forwarded_once() {
    let fixture = Fixture::new();
    let signals = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("QUIT", libc::SIGQUIT),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("ALRM", libc::SIGALRM),
        ("WINCH", libc::SIGWINCH),
        ("CONT", libc::SIGCONT),
        ("TSTP", libc::SIGTSTP),
    ];
    for (plan, mut command) in fixture.both(&["sh", "-c", COUNTER]) {
        let mut child = started(&fixture, &mut command);
        for (sent, (name, signal)) in signals.iter().enumerate() {
            kill(child.id(), *signal);
            wait_until(name, || lines(&fixture, "got").len() > sent);
        }
        sleep(Duration::from_millis(60));
        kill(child.id(), libc::SIGTERM);
        assert_eq!(child.wait().unwrap().code(), Some(42), "{plan}");
        assert_eq!(
            lines(&fixture, "got"),
            signals.map(|(name, _)| name),
            "{plan}"
        );
    }
}

#[test]
fn a_forwarded_signal_that_kills_kills_both() {
    let fixture = Fixture::new();
    for (plan, mut command) in fixture.both(&["sh", "-c", "echo $$ > ready; exec sleep 60"]) {
        let mut child = started(&fixture, &mut command);
        kill(child.id(), libc::SIGHUP);
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGHUP), "{plan}");
    }
}

#[test]
fn an_alarm_from_before_still_ends_the_program() {
    let fixture = Fixture::new();
    if !has_program("perl") {
        eprintln!("skipped: no perl");
        return;
    }
    let mut command = Command::new("perl");
    command.args(["-e", "alarm 1; exec @ARGV"]);
    command.arg(tollfree()).args(["run", "--plan"]);
    command
        .arg(fixture.path("inside.txt"))
        .args(["--", "sleep", "60"]);
    assert_eq!(command.status().unwrap().signal(), Some(libc::SIGALRM));
}

#[test]
fn a_killed_tollfree_takes_the_program_with_it() {
    let fixture = Fixture::new();
    let mut command = fixture.run(
        "nothing.txt",
        &["sh", "-c", "echo $$ > ready; exec sleep 60"],
    );
    let mut child = started(&fixture, &mut command);
    let program: u32 = lines(&fixture, "ready")[0].parse().unwrap();
    assert!(is_running(program));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the program to end", || !is_running(program));
}

/// The status from wait4 of a child, including stops.
fn wait_raw(pid: u32) -> i32 {
    let mut status = 0;
    // SAFETY: the pointer is valid.
    assert!(unsafe { libc::waitpid(pid as i32, &mut status, libc::WUNTRACED) } > 0);
    status
}

#[test]
fn job_control_stops_and_continues_both() {
    let fixture = Fixture::new();
    let script = "echo $$ > ready; kill -TSTP $$; exit 4";
    for (plan, mut command) in fixture.both(&["sh", "-c", script]) {
        // A job, started as a shell would.
        let mut child = started(&fixture, command.process_group(0));
        let status = wait_raw(child.id());
        assert!(libc::WIFSTOPPED(status), "{plan}: {status:#x}");
        assert_eq!(libc::WSTOPSIG(status), libc::SIGTSTP);
        kill_group(child.id(), libc::SIGCONT);
        assert_eq!(child.wait().unwrap().code(), Some(4), "{plan}");
    }
}

#[test]
fn a_debugger_that_stops_the_program_does_not_stop_tollfree() {
    let fixture = Fixture::new();
    let mut command = fixture.run("nothing.txt", &["sh", "-c", COUNTER]);
    let mut child = started(&fixture, &mut command);
    let program: u32 = lines(&fixture, "ready")[0].parse().unwrap();
    kill(program, libc::SIGSTOP);
    sleep(Duration::from_millis(50));
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    assert!(!stat.contains(") T "), "{stat}");
    kill(program, libc::SIGCONT);
    kill(child.id(), libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(42));
}
