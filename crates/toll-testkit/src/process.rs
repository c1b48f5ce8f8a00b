// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running programs: their lines, signals to them, waiting for events.

use std::env;
use std::fmt::Display;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Time limit for waiting for an event that should be immediate.
const PATIENCE: Duration = Duration::from_secs(180);

/// The variable that selects what [`before_main!`](crate::before_main) runs.
pub const TARGET: &str = "TOLL_TARGET";

/// Calls a function before the test harness starts: its thread is the main thread of a process,
/// and it can become a target if [`TARGET`](crate::process::TARGET) is set.
#[macro_export]
macro_rules! before_main {
    ($function:path) => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static BEFORE_MAIN: extern "C" fn() = {
            extern "C" fn before_main() {
                $function();
            }
            before_main
        };
    };
}

/// Returns this test program as a target of this kind.
pub fn target(kind: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(TARGET, kind);
    command
}

/// A running program with a stdout that is read line by line; killed with the value.
pub struct Running {
    pub child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub fn start(command: &mut Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        spawn(move || {
            let mut read = output.lines().map_while(Result::ok);
            while read.next().is_some_and(|line| sender.send(line).is_ok()) {}
        });
        Running { child, lines }
    }

    /// Starts this test program again as a target of this kind.
    pub fn target(kind: &str) -> Running {
        Running::start(&mut target(kind))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next line of its stdout.
    pub fn line(&mut self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        line.expect("a line of the program")
    }

    /// Returns the rest of the next line that starts with `key`.
    pub fn answer(&mut self, key: &str) -> String {
        loop {
            if let Some(value) = self.line().strip_prefix(key) {
                return value.to_owned();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for an event.
pub fn wait_until(what: &str, mut met: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !met() {
        assert!(Instant::now() < end, "waited in vain for: {what}");
        sleep(Duration::from_millis(2));
    }
}

/// Sends a signal to a process.
pub fn kill(pid: u32, signal: i32) {
    // SAFETY: kill takes no pointer.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// Sends a signal to a process group.
pub fn kill_group(group: u32, signal: i32) {
    // SAFETY: killpg takes no pointer.
    assert_eq!(unsafe { libc::killpg(group as i32, signal) }, 0);
}

/// Sends SIGINT to a process.
pub fn interrupt(pid: u32) {
    kill(pid, libc::SIGINT);
}

/// Whether a process is running, not counting zombies.
pub fn is_running(pid: impl Display) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim();
    !state.is_empty() && !state.starts_with('Z')
}
