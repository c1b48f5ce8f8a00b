// SPDX-License-Identifier: MIT OR Apache-2.0
//! Running processes: they end, execute other programs, and belong to others.

use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use toll_testkit::Directory;
use toll_testkit::machine::is_root;
use toll_testkit::output::{assert_fails, stderr, succeeds};
use toll_testkit::process::wait_until;

use crate::{check, counter, report, report_in, value};

/// A shell that runs a script, killed with the value.
struct Shell(Child);

impl Shell {
    fn start(directory: &Directory, script: &str) -> Shell {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(directory.as_path());
        Shell(shell.stdin(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_is_watched_for_a_time_and_runs_on() {
    let directory = Directory::empty();
    let script = "echo > ready; while read -r go; do cat /proc/self/stat; done > /dev/null";
    let mut shell = Shell::start(&directory, script);
    let pid = shell.pid();
    let line = ["--json", "stat", "-p", &pid, "--for", "300ms"];
    let report = report(&directory.run(&line));
    assert_eq!(report["subject"]["pid"], shell.0.id());
    let elapsed = report["elapsed_ns"].as_u64().unwrap();
    assert!(elapsed >= 300_000_000, "{elapsed}");
    assert!(value(&report, "process tree", "page_tables") > 0.0);
    assert!(shell.0.try_wait().unwrap().is_none(), "it still runs");
}

/// It forks, executes another program with the same id, and ends: one report covers all of it.
#[test]
fn a_process_that_forks_executes_and_ends_is_followed() {
    let directory = Directory::empty();
    let script = "read -r go; sh -c 'cat /proc/self/status > /dev/null'; exec sh -c 'sleep 0.3'";
    let mut shell = Shell::start(&directory, script);
    let pid = shell.pid();
    let mut stat = directory.tollfree(&["--json", "stat", "-I", "50ms", "-p", &pid, "-o", "out"]);
    let mut child = stat.spawn().unwrap();
    wait_until("the first interval", || {
        directory.read("out").contains('\n')
    });
    shell.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(shell.0.wait().unwrap().success());
    assert!(child.wait().unwrap().success());
    let text = directory.read("out");
    let faults = text.lines().map(|line| {
        let report: Value = serde_json::from_str(line).unwrap();
        check(&report);
        value(&report, "process tree", "page_faults_minor")
    });
    let faults: f64 = faults.sum();
    assert!(faults > 50.0, "{faults}: {text}");
}

#[test]
fn a_process_that_is_gone_is_a_zombie_or_a_kernel_thread_is_refused() {
    let directory = Directory::empty();
    let mut gone = Command::new("true").spawn().unwrap();
    let pid = gone.id().to_string();
    wait_until("its end", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    });
    assert_fails(
        &directory.run(&["stat", "-p", &pid]),
        3,
        &[&pid, "has ended"],
    );
    gone.wait().unwrap();
    assert_fails(
        &directory.run(&["stat", "-p", &pid]),
        3,
        &[&pid, "not found"],
    );
    assert_fails(
        &directory.run(&["stat", "-p", "4294967295"]),
        3,
        &["4294967295"],
    );
    let kernel = fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if kernel == "kthreadd\n" {
        assert_fails(
            &directory.run(&["stat", "-p", "2"]),
            3,
            &["process 2 is a kernel thread"],
        );
    }
}

/// Another user's process has counters for everyone, and no memory.
#[test]
fn a_process_of_another_user_shows_what_everyone_may_see() {
    if !is_root() {
        eprintln!("skipped: not root");
        return;
    }
    let directory = Directory::empty();
    let shell = Shell::start(&directory, "echo > ready; read -r go");
    wait_until("the shell", || directory.path("ready").exists());
    fs::copy(toll_testkit::tool::tollfree(), directory.path("tollfree")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&directory, mode).unwrap();
    let pid = shell.pid();
    let mut stat = Command::new("setpriv");
    stat.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    stat.arg(directory.path("tollfree"));
    stat.args(["--json", "stat", "--for", "100ms", "-p", &pid])
        .env_remove("HOME");
    let Ok(output) = stat.output() else {
        eprintln!("skipped: no setpriv");
        return;
    };
    let report = report(&output);
    assert_eq!(value(&report, "process tree", "page_faults_minor"), 0.0);
    let memory = counter(&report, "process tree", "mapped_huge_anon");
    assert!(
        memory["why_missing"]
            .as_str()
            .unwrap()
            .contains("not permitted"),
        "{memory}"
    );
    assert!(memory["fix"].as_str().unwrap().contains("root"), "{memory}");
    let switches = counter(&report, "process tree", "context_switches");
    let reason = switches["why_missing"].as_str().unwrap();
    assert!(reason.contains("perf"), "{reason}");
}

/// In a PID namespace of its own, with the kernel's threads out of sight.
#[test]
fn a_pid_namespace_hides_only_the_kernels_threads() {
    let directory = Directory::empty();
    let inside = "unshare --pid --fork --mount-proc \
        $TOLLFREE --json stat -o out -- sh -c 'unshare --pid --fork true; exit 5'; echo $?";
    let Some(output) = directory.in_own_mounts(inside) else {
        return;
    };
    assert!(output.stdout.ends_with(b"5\n"), "{}", stderr(&output));
    let report = report_in(&directory, "out");
    assert!(value(&report, "process tree", "page_faults_minor") > 0.0);
    assert!(counter(&report, "machine", "page_faults")["value"].is_number());
    let threads = counter(&report, "machine", "cpu_kswapd");
    assert!(
        threads["fix"].as_str().unwrap().contains("--pid host"),
        "{threads}"
    );
}

/// A process is named by its number in the namespace of the caller's /proc.
#[test]
fn a_process_in_a_nested_namespace_is_found_by_its_outer_number() {
    let directory = Directory::empty();
    let line = "unshare --pid --fork sh -c 'echo > ready; sleep 60' & outer=$!
        until [ -e ready ]; do sleep 0.01; done
        $TOLLFREE stat --for 50ms -p $outer; status=$?
        kill -KILL $(cat /proc/$outer/task/$outer/children); exit $status";
    if let Some(output) = directory.in_own_mounts(line) {
        let text = succeeds(&output);
        assert!(text.contains("minor page faults"), "{text}");
    }
}
