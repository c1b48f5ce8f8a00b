// SPDX-License-Identifier: MIT OR Apache-2.0
//! Terminals: wide ones, narrow ones, and some without attributes.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use toll_testkit::process::interrupt;
use toll_testkit::terminal::terminal;

use crate::Machine;

/// Gives Ctrl-C its effect: the parent of the tests may ignore it.
pub fn heeding_ctrl_c(command: &mut Command) -> &mut Command {
    // SAFETY: one async-signal-safe call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    }
}

/// A running top and its terminal.
struct Session {
    ours: File,
    theirs: File,
    child: Child,
    drawn: String,
    machine: Machine,
}

impl Session {
    fn start(rows: u16, columns: u16, environment: &[(&str, &str)]) -> Session {
        let machine = Machine::new();
        let (ours, theirs) = terminal(rows, columns);
        let mut command = machine.0.as_machine(&["top", "-I", "20ms"]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        command.envs(environment.iter().copied());
        let end = || theirs.try_clone().unwrap();
        heeding_ctrl_c(&mut command).stdin(end()).stdout(end());
        Session {
            child: command.spawn().unwrap(),
            ours,
            theirs,
            drawn: String::new(),
            machine,
        }
    }

    /// Reads until the pages drawn from now on contain `what`.
    fn until(&mut self, what: &str) -> String {
        self.drawn.clear();
        let begun = Instant::now();
        let mut buffer = [0; 4096];
        while !self.drawn.contains(what) {
            let is_late = begun.elapsed() > Duration::from_secs(60);
            assert!(
                !is_late && self.is_readable(),
                "{what:?} is not in {:?}",
                self.drawn
            );
            let number = self.ours.read(&mut buffer).unwrap();
            self.drawn += &String::from_utf8_lossy(&buffer[..number]);
        }
        self.drawn.clone()
    }

    fn is_readable(&self) -> bool {
        let mut fd = libc::pollfd {
            fd: self.ours.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, which is open.
        unsafe { libc::poll(&raw mut fd, 1, 60_000) > 0 }
    }

    fn press(&mut self, keys: &str) {
        self.ours.write_all(keys.as_bytes()).unwrap();
    }

    /// Ends it with a key; the terminal is as before.
    fn end(mut self) {
        self.press("q");
        self.until("\x1b[?25h\x1b[?1049l");
        assert!(self.child.wait().unwrap().success());
    }
}

/// The lines of the last whole page in what was drawn.
fn page(drawn: &str) -> Vec<String> {
    let end = drawn.rfind("\x1b[J").unwrap();
    let begin = drawn[..end].rfind("\x1b[H").unwrap() + 3;
    let lines = drawn[begin..end].split("\r\n");
    // The terminal adds a carriage return to each new line.
    let plain = |line: &str| line.replace("\x1b[K", "").replace('\r', "");
    lines.map(plain).collect()
}

fn local_modes(terminal: &File) -> libc::tcflag_t {
    // SAFETY: the descriptor is a terminal, and `modes` takes the answer.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes), 0);
        modes.c_lflag
    }
}

#[test]
fn keys_change_what_is_shown() {
    let mut top = Session::start(30, 100, &[]);
    top.until("COMMAND");
    top.press("c");
    top.until("CGROUP");
    top.press("c>");
    top.until("by CPU%");
    top.press("/serv\r");
    let drawn = top.until("with \"serv\"") + &top.until("\x1b[J");
    assert!(
        !page(&drawn).iter().any(|line| line.contains("idle")),
        "{drawn:?}"
    );
    top.press("p");
    top.until("paused");
    top.press("h");
    let help = top.until("not measurable here");
    assert!(help.contains("PgUp PgDn"), "{help:?}");
    top.press("x");
    top.until("paused");
    top.press("pi50ms\r");
    top.until("by CPU%, with \"serv\";");
    top.end();
}

#[test]
fn a_narrow_terminal_has_whole_lines() {
    let mut top = Session::start(12, 40, &[]);
    let drawn = top.until("server") + &top.until("\x1b[J");
    let page = page(&drawn);
    assert!(page.len() <= 12, "{page:?}");
    for line in &page {
        let plain = line.replace("\x1b[7m", "").replace("\x1b[0m", "");
        assert!(plain.chars().count() <= 40, "{plain:?}");
    }
    assert!(
        drawn.contains("LOST%") && drawn.contains("CPU%"),
        "{drawn:?}"
    );
    top.end();
}

#[test]
fn attributes_are_left_out_where_they_are_not_wanted() {
    for environment in [("TERM", "dumb"), ("NO_COLOR", "1")] {
        let mut top = Session::start(20, 80, &[environment]);
        let drawn = top.until("server");
        assert!(!drawn.contains("\x1b[7m"), "{drawn:?}");
        top.end();
    }
    let mut top = Session::start(20, 80, &[]);
    top.until("\x1b[7m");
    top.end();
}

#[test]
fn the_terminal_is_restored_at_the_end() {
    let mut top = Session::start(20, 80, &[]);
    let theirs = top.theirs.try_clone().unwrap();
    top.until("LOST%");
    let during = local_modes(&theirs);
    assert_eq!(during & libc::ECHO, 0);
    interrupt(top.child.id());
    top.until("\x1b[?25h\x1b[?1049l");
    assert!(top.child.wait().unwrap().success());
    assert_ne!(local_modes(&theirs) & libc::ECHO, 0);
}

/// Names in cgroups and of processes cannot draw.
#[test]
fn hostile_names_do_not_draw() {
    let mut top = Session::start(20, 80, &[]);
    top.machine
        .process(103, "\u{1b}[2Jx\u{9b}5n", 0, 9, "0::/\u{1b}[2J\n");
    let drawn = top.until("?[2Jx?5n");
    assert!(!drawn.contains("\u{1b}[2J"), "{drawn:?}");
    top.press("c");
    top.until("a?[2J");
    top.end();
}
