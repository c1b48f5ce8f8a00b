// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel top` on fixture kernels: in a pipe, as JSON, and on a terminal.

mod schema;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const ECON: &str = "sys/kernel/mm/econ";

/// A kernel with econ, two processes with a profile and one without.
struct Kernel(TempDir);

impl Kernel {
    fn new() -> Kernel {
        let kernel = Kernel(tempfile::tempdir().unwrap());
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

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Replaced atomically, so that a reader never sees half of it.
        let new = path.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollfree"));
        command
            .args(["kernel", "top"])
            .args(arguments)
            .arg("--root")
            .arg(self.0.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

fn text(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
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
struct Lines(Child, BufReader<std::process::ChildStdout>);

impl Lines {
    fn of(mut command: Command) -> Lines {
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Lines(child, out)
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        let value = serde_json::from_str(&line).unwrap();
        schema::check("top", &value);
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

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_single_look_has_what_was_decided_since_boot() {
    let text = text(&Kernel::new().top(&["--once"]).output().unwrap());
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
    let text = text(
        &kernel
            .top(&["-n", "3", "--interval", "20ms"])
            .output()
            .unwrap(),
    );
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
    let mut lines = Lines::of(kernel.top(&["--json", "--interval", "50ms"]));
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
        fs::remove_file(kernel.path(&format!("proc/45/{gone}"))).unwrap();
        let text = text(&kernel.top(&["--once"]).output().unwrap());
        assert!(
            text.contains("42 redis") && !text.contains("brief"),
            "{gone}: {text}"
        );
    }
    // Its file exists, and reading it fails as for a process that has ended.
    fs::remove_file(kernel.path("proc/45/comm")).unwrap_or(());
    fs::create_dir(kernel.path("proc/45/mm_ledger")).unwrap();
    text(&kernel.top(&["--once"]).output().unwrap());
}

#[test]
fn a_kernel_without_keeper_and_processes_says_so() {
    let kernel = Kernel::new();
    fs::remove_dir_all(kernel.path(&format!("{ECON}/zeroed_blocks"))).unwrap();
    fs::remove_dir_all(kernel.path("proc")).unwrap();
    let text = text(&kernel.top(&["--once"]).output().unwrap());
    assert!(!text.contains("zeroed"), "{text}");
    assert!(text.contains("no readable process has a profile"), "{text}");
}

#[test]
fn another_kernel_is_4_and_wrong_usage_is_2() {
    let directory = tempfile::tempdir().unwrap();
    let output = Kernel(directory).top(&["--once"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let said = "tollfree: /sys/kernel/mm/econ: not found: this kernel has no econ (CONFIG_ECON)\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
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

/// A terminal: our end, and the name of the other.
fn terminal() -> (File, PathBuf) {
    // SAFETY: plain calls; the name has room, and the descriptor is not shared.
    unsafe {
        let ours = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(ours >= 0 && libc::grantpt(ours) == 0 && libc::unlockpt(ours) == 0);
        let mut name = [0u8; 64];
        assert_eq!(
            libc::ptsname_r(ours, name.as_mut_ptr().cast(), name.len()),
            0
        );
        let name = name.split(|byte| *byte == 0).next().unwrap();
        let size = libc::winsize {
            ws_row: 30,
            ws_col: 60,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        assert_eq!(libc::ioctl(ours, libc::TIOCSWINSZ, &raw const size), 0);
        (
            File::from_raw_fd(ours),
            PathBuf::from(String::from_utf8(name.to_vec()).unwrap()),
        )
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
    let (mut ours, name) = terminal();
    let theirs = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&name)
            .unwrap()
    };
    let held = theirs();
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
        // SAFETY: the child is ours and has not been waited for.
        unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    });
}
