// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that `stat` starts: they notice nothing, and all their processes are counted.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use toll_testkit::Directory;
use toll_testkit::compiler::compile_text;
use toll_testkit::output::{stderr, stdout};
use toll_testkit::process::{interrupt, kill, wait_until};
use toll_testkit::terminal::terminal;

use crate::{check, counter, heeding_ctrl_c, report_in, value};

/// Touches PAGES pages of 4 KiB in each of PROCESSES children, and ends with STATUS: pages
/// PAGES PROCESSES STATUS. A last argument leaves the children to nobody.
const PAGES: &str = r"
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch(size_t pages)
{
	size_t length = pages << 12;
	volatile char *at = mmap(0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)at, length, MADV_NOHUGEPAGE);
	for (size_t page = 0; page < pages; page++)
		at[page << 12] = 1;
}

int main(int argc, char **argv)
{
	int processes = atoi(argv[2]);

	if (argc > 4)
		signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < processes; i++) {
		if (fork() == 0) {
			touch(strtoul(argv[1], 0, 10));
			_exit(0);
		}
	}
	while (wait(0) > 0)
		;
	return atoi(argv[3]);
}
";

/// The directory with the program; `None` without a compiler.
fn pages() -> Option<Directory> {
    let directory = Directory::empty();
    compile_text(PAGES, &directory.path("pages"), &["-O1"]).then_some(directory)
}

#[test]
fn the_page_faults_of_all_processes_are_counted() {
    let Some(directory) = pages() else { return };
    for more in [&[][..], &["unwaited"]] {
        let line = [
            "--json", "stat", "-o", "out", "--", "./pages", "8192", "3", "0",
        ];
        let output = directory.run(&[&line, more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let report = report_in(&directory, "out");
        let minor = value(&report, "process tree", "page_faults_minor");
        // Without perf events, children that nobody waits for count up to the last look.
        let least = if more.is_empty() { 3.0 * 8192.0 } else { 0.0 };
        assert!(minor >= least, "{minor}");
        assert!(minor < 3.0 * 8192.0 + 5_000.0, "{minor}");
        let loss = counter(&report, "process tree", "page_faults_minor")["loss_ns"].as_f64();
        assert!(more.len() == 1 || loss.unwrap() > 0.0);
        assert!(report["cpu_ns"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn status_signals_and_streams_pass_through() {
    let directory = Directory::empty();
    for code in [0, 1, 7, 125, 255] {
        let output = directory.run(&["stat", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(output.status.code(), Some(code));
        assert!(
            stderr(&output).contains("minor page faults"),
            "{}",
            stderr(&output)
        );
        assert_eq!(stdout(&output), "");
    }
    for signal in [libc::SIGTERM, libc::SIGSEGV, libc::SIGKILL] {
        let output = directory.run(&["stat", "--", "sh", "-c", &format!("kill -{signal} $$")]);
        assert_eq!(output.status.signal(), Some(signal));
        assert!(stderr(&output).contains("minor page faults"));
    }
    let mut cat = directory.tollfree(&["stat", "-o", "out", "--", "cat"]);
    let mut child = cat.stdin(Stdio::piped()).spawn().unwrap();
    let bytes: Vec<u8> = (0..=255).collect();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, bytes);
    assert_eq!(stderr(&output), "", "the table is in the file");
    assert!(
        directory.read("out").starts_with("cat: "),
        "{}",
        directory.read("out")
    );
}

#[test]
fn a_signal_reaches_the_program() {
    let directory = Directory::empty();
    let script = "trap 'exit 42' USR1; echo $$ > ready; while :; do sleep 0.02; done";
    let mut stat = directory.tollfree(&["stat", "--", "sh", "-c", script]);
    let child = stat.spawn().unwrap();
    wait_until("the program", || !directory.read("ready").is_empty());
    kill(child.id(), libc::SIGUSR1);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(42));
    assert!(stderr(&output).contains("minor page faults"));
}

#[test]
fn ctrl_c_ends_the_program_and_leaves_the_table() {
    let directory = Directory::empty();
    let script = "echo $$ > ready; exec sleep 60";
    let mut stat = directory.tollfree(&["stat", "--", "sh", "-c", script]);
    let child = heeding_ctrl_c(&mut stat).spawn().unwrap();
    wait_until("the program", || !directory.read("ready").is_empty());
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGINT));
    assert!(
        stderr(&output).contains("minor page faults"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_cannot_be_started_is_told_apart_and_leaves_no_report() {
    let directory = Directory::empty();
    for (program, code) in [("nonexistent-program", 127), ("/etc/passwd", 126)] {
        let output = directory.run(&["stat", "-o", "out", "--", program]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).starts_with(&format!("tollfree: {program}")));
        assert!(!directory.path("out").exists());
    }
}

#[test]
fn wrong_usage_is_2_and_nothing_runs() {
    let directory = Directory::empty();
    let cases: [&[&str]; 8] = [
        &["stat"],
        &["stat", "-p", "1", "-a"],
        &["stat", "-a", "--cgroup", "x"],
        &["stat", "-p", "1", "--", "touch", "ran"],
        &["stat", "-p", "0"],
        &["stat", "-p", "-3"],
        &["stat", "-I", "1ms", "--", "touch", "ran"],
        &["stat", "--for", "1s", "--", "touch", "ran"],
    ];
    for case in cases {
        let output = directory.run(case);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{case:?}: {}",
            stderr(&output)
        );
        assert!(!directory.path("ran").exists());
    }
    let output = directory.run(&["stat", "-o", "nowhere/out", "--", "touch", "ran"]);
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("nowhere/out"));
    assert!(!directory.path("ran").exists());
}

#[test]
fn intervals_are_lines_that_add_up() {
    let directory = Directory::empty();
    let script = "sleep 0.5; cat /proc/self/status; sleep 0.5";
    let line = [
        "--json", "stat", "-I", "200ms", "-o", "out", "--", "sh", "-c", script,
    ];
    let output = directory.run(&line);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = directory.read("out");
    let reports: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(reports.len() >= 3, "{}", reports.len());
    let mut elapsed = 0;
    for report in &reports {
        check(report);
        elapsed += report["interval_ns"].as_u64().unwrap();
        let now = report["elapsed_ns"].as_u64().unwrap();
        assert!(now.abs_diff(elapsed) < 50_000_000, "{now} {elapsed}");
    }
    let faults = reports
        .iter()
        .map(|report| value(report, "process tree", "page_faults"));
    let faults: f64 = faults.sum();
    assert!(faults > 100.0, "{faults}");
}

#[test]
fn intervals_explain_what_is_missing_once() {
    let directory = Directory::empty();
    let output = directory.run(&["stat", "-I", "100ms", "--", "sleep", "0.6"]);
    let text = stderr(&output);
    assert!(text.matches("sleep 0.6: ").count() >= 3, "{text}");
    assert!(text.matches("not measurable here").count() <= 1, "{text}");
}

/// On a narrow terminal each line fits, and a name cannot change the terminal.
#[test]
fn a_table_fits_a_terminal_of_40_columns() {
    let directory = Directory::empty();
    let name = "\x1b[2J\x07evil name that is longer than any terminal of 40 columns\n";
    directory.executable(name, "#!/bin/sh\nexit 0\n");
    let program = format!("./{name}");
    for columns in [40, 200, 20] {
        let (mut ours, theirs) = terminal(50, columns);
        let mut stat = directory.tollfree(&["stat", "--", &program]);
        let mut child = stat.stdout(Stdio::null()).stderr(theirs).spawn().unwrap();
        drop(stat);
        let mut shown = Vec::new();
        // Reading fails after the last user of the terminal closes it.
        let _ = ours.read_to_end(&mut shown);
        assert!(child.wait().unwrap().success());
        let shown = String::from_utf8_lossy(&shown).replace('\r', "");
        assert!(shown.contains("minor page faults"), "{shown}");
        for line in shown.lines() {
            let is_narrow = line.chars().count() <= usize::from(columns);
            assert!(is_narrow, "{columns}: {line:?}");
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}

#[test]
fn a_closed_stderr_or_stdin_changes_nothing() {
    let directory = Directory::empty();
    let output = directory.shell("$TOLLFREE stat -- sh -c 'echo out; exit 3' 2>&- <&-; echo $?");
    assert_eq!(stdout(&output), "out\n3\n");
    let output = directory.shell("$TOLLFREE --json stat -o /dev/fd/3 -- echo out 3>said");
    assert_eq!(
        (stdout(&output), stderr(&output)),
        ("out\n".into(), String::new())
    );
    check(&directory.json("said"));
    assert!(fs::metadata(directory.path("said")).unwrap().len() > 100);
}
