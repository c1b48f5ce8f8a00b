// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes that end, execute other programs, and belong to others.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use toll_testkit::Directory;
use toll_testkit::machine::{is_root, thp_is_madvise};
use toll_testkit::output::{assert_fails, succeeds};
use toll_testkit::process::wait_until;
use toll_testkit::schema;

use crate::{Memory, billed, bytes, check};

#[test]
fn a_process_that_is_gone_a_zombie_or_a_thread_is_refused() {
    let directory = Directory::empty();
    let mut gone = Command::new("true").spawn().unwrap();
    let pid = gone.id().to_string();
    wait_until("its end", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    });
    assert_fails(&directory.run(&["why", &pid]), 3, &[&pid, "has ended"]);
    gone.wait().unwrap();
    assert_fails(&directory.run(&["why", &pid]), 3, &[&pid, "not found"]);
    assert_fails(&directory.run(&["why", "4294967295"]), 3, &["4294967295"]);
    assert_fails(&directory.run(&["why", "0"]), 2, &["0"]);
    assert_fails(&directory.run(&["why", "init"]), 2, &["init"]);
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        assert_fails(&directory.run(&["why", "2"]), 3, &["is a kernel thread"]);
    }
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.map(|it| it.unwrap().file_name().into_string().unwrap());
    let own = std::process::id().to_string();
    let thread = ids.into_iter().find(|id| *id != own).unwrap();
    let says = format!("{thread} is a thread of process {own}");
    assert_fails(&directory.run(&["why", &thread]), 3, &[&says]);
}

/// Reports of a process that calls exec all the time are whole: of one program or the other.
#[test]
fn a_process_that_executes_others_is_read_whole_or_refused() {
    let directory = Directory::empty();
    let again = "#!/bin/sh\nexec ./again\n";
    directory.executable("again", again);
    let mut command = Command::new(directory.path("again"));
    let mut child = command.current_dir(directory.as_path()).spawn().unwrap();
    let pid = child.id().to_string();
    for _ in 0..20 {
        let output = directory.run(&["why", &pid, "--json"]);
        match output.status.code() {
            Some(0) => {
                check(&schema::json("why", &output));
            }
            _ => assert_fails(&output, 3, &[&pid, "executes other programs"]),
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Another user's process: the report has what everyone may see, and names the rest with its fix.
#[test]
fn a_process_of_another_user_shows_what_everyone_may_see() {
    if !is_root() {
        eprintln!("skipped: not root");
        return;
    }
    let directory = Directory::empty();
    let Some(memory) = Memory::start(&directory, "plain") else {
        return;
    };
    fs::copy(toll_testkit::tool::tollfree(), directory.path("tollfree")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&directory, mode).unwrap();
    let other = |words: &[&str]| {
        let mut why = Command::new("setpriv");
        why.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        why.arg(directory.path("tollfree")).arg("why").args(words);
        why.env_remove("HOME").stdin(Stdio::null()).output()
    };
    let pid = memory.pid();
    let Ok(output) = other(&[&pid, "--json"]) else {
        eprintln!("skipped: no setpriv");
        return;
    };
    let report = schema::json("why", &output);
    check(&report);
    assert!(bytes(&report["resident_bytes"]) >= 8 << 20, "{report:#}");
    assert_eq!(billed(&report, "unread"), bytes(&report["resident_bytes"]));
    let missing = &report["missing"][0];
    assert_eq!(missing["what"], "mappings");
    assert!(
        missing["reason"]
            .as_str()
            .unwrap()
            .contains("not permitted")
    );
    assert!(
        missing["fix"].as_str().unwrap().contains("user 0"),
        "{missing}"
    );
    let text = succeeds(&other(&[&pid]).unwrap());
    assert!(text.contains("not readable here"), "{text}");
    assert_fails(&other(&[&pid, "heap"]).unwrap(), 4, &["not permitted"]);
}

/// The report of an ordinary user about a program of his own; `None` without setpriv.
fn as_user(directory: &Directory, kind: &str) -> Option<Value> {
    let script = format!(
        "exec 3<&0; ./memory {kind} <&3 >address & pid=$!
        while ! grep -q 0x address; do :; done; ./tollfree why $pid --json; rm address"
    );
    let mut shell = Command::new("setpriv");
    shell.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    shell.args(["sh", "-c", &script]);
    shell.current_dir(directory.as_path()).stdin(Stdio::piped());
    let Ok(mut child) = shell.stdout(Stdio::piped()).spawn() else {
        eprintln!("skipped: no setpriv");
        return None;
    };
    // The program ends once its stdin closes.
    let input = child.stdin.take();
    let report = schema::json("why", &child.wait_with_output().unwrap());
    drop(input);
    check(&report);
    Some(report)
}

/// An ordinary user sees everything of his own processes but frame numbers.
#[test]
fn an_own_process_needs_no_privilege() {
    if !is_root() || !thp_is_madvise() {
        eprintln!("skipped: not root");
        return;
    }
    let directory = Directory::empty();
    if Memory::start(&directory, "plain").is_none() {
        return;
    }
    fs::copy(toll_testkit::tool::tollfree(), directory.path("tollfree")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&directory, mode).unwrap();
    let Some(report) = as_user(&directory, "bloat") else {
        return;
    };
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if !matches!(yama.trim(), "1" | "2" | "3") {
        assert!(
            report["unused"]["bytes"].as_f64().unwrap() > 0.0,
            "{report:#}"
        );
    }
    let report = as_user(&directory, "purged").unwrap();
    assert_eq!(billed(&report, "waiting"), 4 << 20, "{report:#}");
    let missing = &report["missing"][0];
    assert_eq!(missing["what"], "split huge pages and sizes below 2 MiB");
    assert!(
        missing["fix"].as_str().unwrap().contains("CAP_SYS_ADMIN"),
        "{missing}"
    );
}

#[test]
fn a_narrow_terminal_has_whole_lines() {
    use std::io::Read;
    let directory = Directory::empty();
    let Some(memory) = Memory::start(&directory, "purged") else {
        return;
    };
    let (mut ours, theirs) = toll_testkit::terminal::terminal(24, 40);
    let mut why = directory.tollfree(&["why", &memory.pid()]);
    let mut child = why.stdout(theirs).spawn().unwrap();
    drop(why);
    let mut shown = Vec::new();
    // Reading fails after the last user of the terminal closes it.
    let _ = ours.read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("resident memory"), "{shown}");
    for line in shown.lines() {
        assert!(
            line.trim_end().chars().count() <= 40,
            "{line:?} in\n{shown}"
        );
    }
}
