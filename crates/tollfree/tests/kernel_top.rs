// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel top` on fixture kernels: in a pipe, as JSON, and on a terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::Value;
use toll_testkit::output::{stderr, succeeds};
use toll_testkit::process::{Running, interrupt};
use toll_testkit::terminal::terminal;
use toll_testkit::{Directory, schema};

const ECON: &str = "sys/kernel/mm/econ";

/// A kernel with econ, two processes with a profile and one without.
struct Kernel(Directory);

impl Kernel {
    fn new() -> Kernel {
        let kernel = Kernel(Directory::empty());
        for (name, text) in [
            ("mode", "on\n"),
            ("costs/fault", "1300\n"),
            ("costs/clear_huge", "216000\n"),
            ("costs/frozen", "0\n"),
            ("costs/samples", "fault 900 1500 64\n"),
            // Fewer than five numbers: for other tests to fill.
            ("stats/ledger", "node 0 refused_ns 5 blocks_made 2\n"),
            ("zeroed_blocks/blocks", "12\n"),
            ("zeroed_blocks/taken", "3400\n"),
        ] {
            kernel.write(&format!("{ECON}/{name}"), text);
        }
        kernel.account("huge", 12);
        kernel.account("promote", 0);
        kernel.process(42, "redis-server", 7, 100);
        kernel.process(43, "xz", 8, 300);
        kernel.write("proc/44/comm", "other\n");
        kernel
    }

    fn write(&self, name: &str, text: &str) {
        self.0.replace(name, text);
    }

    fn account(&self, model: &str, asked: u64) {
        let text = format!(
            "asked {asked}\napproved {}\ncost_ns 2200000\nbenefit_ns 50000000\nrefused_ns 130\n",
            asked / 2
        );
        self.write(&format!("{ECON}/stats/{model}"), &text);
    }

    fn process(&self, pid: u32, name: &str, started: u64, asked: u64) {
        let zeros = "0 ".repeat(18);
        self.write(&format!("proc/{pid}/comm"), &format!("{name}\n"));
        let stat = format!("{pid} ({name}) S {zeros}{started} {}\n", "0 ".repeat(30));
        self.write(&format!("proc/{pid}/stat"), &stat);
        let ledger = format!("mode default\nhuge {asked} {asked} 100 2000 30\nlarge 0 0 0 0 0\n");
        self.write(&format!("proc/{pid}/mm_ledger"), &ledger);
    }

    fn top(&self, arguments: &[&str]) -> Command {
        self.as_machine(&[&["kernel", "top"], arguments].concat())
    }

    /// The text of a successful command.
    fn text(&self, arguments: &[&str]) -> String {
        succeeds(&self.top(arguments).output().unwrap())
    }
}

impl Deref for Kernel {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

/// The columns of the line that contains `what`.
fn line<'a>(text: &'a str, what: &str) -> Vec<&'a str> {
    let line = text
        .lines()
        .find(|line| line.contains(what))
        .unwrap_or_else(|| panic!("{what}\nin\n{text}"));
    line.split_once(what)
        .unwrap()
        .1
        .split_whitespace()
        .collect()
}

/// JSON objects of a running `top --json`.
struct Lines(Running);

impl Lines {
    fn next(&mut self) -> Value {
        let value = serde_json::from_str(&self.0.line()).unwrap();
        schema::check("kernel-top", &value);
        value
    }

    /// The first object that satisfies the condition; fixture kernels change at any time.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let value = self.next();
            if is_it(&value) {
                return value;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{value}");
        }
    }
}

#[test]
fn a_single_look_has_what_was_decided_since_boot() {
    let text = Kernel::new().text(&["--once"]);
    assert!(text.starts_with("econ is on; since boot\n"), "{text}");
    assert_eq!(
        line(&text, "decision"),
        ["asked", "done", "cost", "saves", "left"]
    );
    assert!(
        text.contains("\ncost, saves: estimates for what was done;"),
        "{text}"
    );
    let huge = line(&text, "a huge page at the first touch");
    assert_eq!(huge, ["12", "6", "2.2", "ms", "50", "ms", "130", "ns"]);
    assert!(
        text.contains("costs: clear huge 216 us, fault 1.3 us\n"),
        "{text}"
    );
    assert!(
        text.contains("zeroed blocks: blocks 12, taken 3,400\n"),
        "{text}"
    );
    assert_eq!(line(&text, "42 redis-server")[..2], ["100", "100"]);
    // That one had the most requests; a process without a profile has none.
    assert!(text.find("43 xz").unwrap() < text.find("42 redis-server").unwrap());
    assert!(
        !text.contains("other") && !text.contains("ledger"),
        "{text}"
    );
}

#[test]
fn a_pipe_gets_a_block_each_time_and_no_control_characters() {
    let kernel = Kernel::new();
    kernel.process(42, "\x1b[2Jredis", 7, 100);
    let text = kernel.text(&["-n", "3", "--interval", "20ms"]);
    assert_eq!(text.matches("econ is on; ").count(), 3, "{text}");
    assert_eq!(text.matches("since boot").count(), 1, "{text}");
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n'),
        "{text:?}"
    );
    assert!(text.contains("42 ?[2Jredis"), "{text}");
}

#[test]
fn an_interval_has_what_was_decided_in_it() {
    let kernel = Kernel::new();
    let mut top = kernel.top(&["--json", "--interval", "50ms"]);
    let mut lines = Lines(Running::start(&mut top));
    let first = lines.next();
    assert_eq!(
        (&first["interval_ns"], &first["processes"][0]["pid"]),
        (&Value::Null, &43.into())
    );
    assert_eq!(first["decisions"].as_array().unwrap().len(), 2);
    kernel.process(42, "redis-server", 7, 150);
    kernel.write(&format!("{ECON}/zeroed_blocks/blocks"), "10\n");
    let next = lines.until(|value| value["processes"][0]["decisions"][0]["asked"] == 50);
    assert_eq!(next["processes"][0]["pid"], 42);
    assert!(next["interval_ns"].as_u64().unwrap() > 0);
    // A process that ends is removed, and one that reuses its id starts at 0.
    fs::remove_dir_all(kernel.path("proc/43")).unwrap();
    lines.until(|value| value["processes"].as_array().unwrap().len() == 1);
    kernel.process(43, "zstd", 99, 5);
    let next = lines.until(|value| value["processes"].as_array().unwrap().len() == 2);
    assert_eq!(
        (
            &next["processes"][0]["name"],
            &next["processes"][0]["decisions"][0]["asked"]
        ),
        (&"zstd".into(), &5.into())
    );
}

/// Processes with files that vanish one by one, in every order.
#[test]
fn a_process_that_ends_between_two_reads_is_no_error() {
    let kernel = Kernel::new();
    for gone in ["comm", "stat", "mm_ledger"] {
        kernel.process(45, "brief", 9, 1);
        fs::remove_file(kernel.path(format!("proc/45/{gone}"))).unwrap();
        let text = kernel.text(&["--once"]);
        assert!(
            text.contains("42 redis") && !text.contains("brief"),
            "{gone}: {text}"
        );
    }
    // Its file exists, and reading it fails as for a process that has ended.
    fs::remove_file(kernel.path("proc/45/comm")).unwrap_or(());
    fs::create_dir(kernel.path("proc/45/mm_ledger")).unwrap();
    kernel.text(&["--once"]);
}

#[test]
fn a_kernel_without_keeper_and_processes_says_so() {
    let kernel = Kernel::new();
    fs::remove_dir_all(kernel.path(format!("{ECON}/zeroed_blocks"))).unwrap();
    fs::remove_dir_all(kernel.path("proc")).unwrap();
    let text = kernel.text(&["--once"]);
    assert!(!text.contains("zeroed"), "{text}");
    assert!(text.contains("no readable process has a profile"), "{text}");
}

#[test]
fn another_kernel_is_4_and_wrong_usage_is_2() {
    let output = Kernel(Directory::empty())
        .top(&["--once"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    let said = "tollfree: /sys/kernel/mm/econ: not found: this kernel has no econ (CONFIG_ECON)\n";
    assert_eq!(stderr(&output), said);
    let kernel = Kernel::new();
    for wrong in [
        &["-n", "0"][..],
        &["--interval", "soon"],
        &["--interval", "1ms"],
        &["--once", "-n", "2"],
    ] {
        assert_eq!(
            kernel.top(wrong).output().unwrap().status.code(),
            Some(2),
            "{wrong:?}"
        );
    }
}

fn modes(terminal: &File) -> libc::tcflag_t {
    // SAFETY: the descriptor is a terminal, and `modes` takes the answer.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        assert_eq!(libc::tcgetattr(terminal.as_raw_fd(), &raw mut modes), 0);
        modes.c_lflag
    }
}

/// Whether there is something to read within a minute.
fn is_readable(terminal: &File) -> bool {
    let mut fd = libc::pollfd {
        fd: terminal.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor, which is open.
    unsafe { libc::poll(&raw mut fd, 1, 60_000) > 0 }
}

/// Reads the output until it contains `what`.
fn read_until(terminal: &mut File, drawn: &mut String, what: &str) {
    let mut buffer = [0; 4096];
    let begun = Instant::now();
    while !drawn.contains(what) {
        let is_late = begun.elapsed() > Duration::from_secs(60);
        assert!(!is_late && is_readable(terminal), "{what:?} was not drawn");
        let number = terminal.read(&mut buffer).unwrap();
        *drawn += &String::from_utf8_lossy(&buffer[..number]);
    }
}

/// Runs top on a terminal until something ends it; it must restore the terminal.
fn on_a_terminal(end: impl Fn(&mut File, &Child)) {
    let kernel = Kernel::new();
    let (mut ours, held) = terminal(30, 60);
    let theirs = || held.try_clone().unwrap();
    let before = modes(&held);
    let mut command = kernel.top(&["--interval", "20ms"]);
    // SAFETY: one call between fork and exec. The parent of the tests may ignore Ctrl-C.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut child = command.stdin(theirs()).stdout(theirs()).spawn().unwrap();
    let mut drawn = String::new();
    // Twice, in place, on the alternate screen.
    read_until(&mut ours, &mut drawn, "since boot");
    assert!(drawn.starts_with("\x1b[?1049h\x1b[?25l"), "{drawn:?}");
    read_until(&mut ours, &mut drawn, "econ is on; in ");
    assert_ne!(modes(&held), before, "keys at once");
    assert!(
        drawn.lines().all(|line| line.chars().count() < 100),
        "{drawn:?}"
    );
    end(&mut ours, &child);
    read_until(&mut ours, &mut drawn, "\x1b[?25h\x1b[?1049l");
    assert!(child.wait().unwrap().success());
    assert_eq!(modes(&held), before);
}

#[test]
fn q_ends_it_and_the_terminal_is_as_before() {
    on_a_terminal(|ours, _| ours.write_all(b"xq").unwrap());
}

#[test]
fn ctrl_c_ends_it_and_the_terminal_is_as_before() {
    on_a_terminal(|_, child| {
        interrupt(child.id());
    });
}
