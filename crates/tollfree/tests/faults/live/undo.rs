// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page sizes from before are restored, however an alternation ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Child;

use toll_testkit::machine::{has_program, is_root};
use toll_testkit::process::{is_running, kill};
use toll_testkit::tool::{library, tollfree};

use super::*;

impl Server {
    /// Each mapping with its huge pages and its flags.
    fn memory(&self) -> Vec<String> {
        let smaps = fs::read_to_string(format!("/proc/{}/smaps", self.pid())).unwrap();
        let kept = |line: &&str| {
            let is_mapping =
                line.starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_lowercase());
            is_mapping || line.starts_with("AnonHugePages:") || line.starts_with("VmFlags:")
        };
        smaps.lines().filter(kept).map(str::to_owned).collect()
    }

    fn is_observed(&self) -> bool {
        // The observation clears the accessed bits of the hot block again and again.
        self.loads() > 1
    }
}

/// When a signal arrives.
struct Phase {
    name: &'static str,
    /// Whether it is reached; the bytes that were huge before.
    reached: fn(&Server, u64) -> bool,
    changed: bool,
}

const PHASES: [Phase; 5] = [
    Phase {
        name: "first run of the workload",
        reached: |server, _| server.loads() > 0,
        changed: false,
    },
    Phase {
        name: "look",
        reached: |server, _| server.is_observed(),
        changed: false,
    },
    Phase {
        name: "split",
        reached: |server, before| server.huge() < before,
        changed: true,
    },
    Phase {
        name: "4 KiB pages",
        reached: |server, _| server.huge() == 0,
        changed: true,
    },
    Phase {
        name: "huge pages",
        reached: |server, before| server.huge() > before,
        changed: true,
    },
];

fn stopped(server: &Server, child: Child, signal: i32, phase: &Phase) {
    let before = server.huge();
    let mut child = child;
    let mut ended = || child.try_wait().unwrap().is_some();
    wait_until(phase.name, || (phase.reached)(server, before) || ended());
    kill(child.id(), signal);
    let output = child.wait_with_output().unwrap();
    let name = phase.name;
    assert_eq!(
        output.status.code(),
        Some(130),
        "{name}: {}",
        stderr(&output)
    );
    let answer = server.place.json("out/tune.json");
    schema::check("tune", &answer);
    assert_eq!(answer["complete"], false, "{name}");
    assert_eq!(answer["advice"], "do-nothing", "{name}");
    let list = server.place.path("out/largepages.txt");
    assert_eq!(list.exists(), phase.changed, "{name}");
}

#[test]
fn a_signal_in_each_phase_leaves_the_memory_as_it_was() {
    if !thp_is_madvise() {
        return;
    }
    for phase in PHASES {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            let server = Server::start_as("huge");
            let before = server.memory();
            let child = server.tune(&["--within", "60s"]).spawn().unwrap();
            stopped(&server, child, signal, &phase);
            assert_eq!(server.memory(), before, "{}", phase.name);
            let pid = server.running.pid();
            assert!(is_running(pid), "the process is not ours to end");
        }
    }
}

/// Nobody can undo anything after SIGKILL; the lists were written before.
#[test]
fn a_killed_tollfree_leaves_lists_that_restore_the_memory() {
    if !thp_is_madvise() {
        return;
    }
    let reached: [fn(&Server, u64) -> bool; 2] = [
        |server, before| server.huge() > before,
        |server, _| server.huge() == 0,
    ];
    for reached in reached {
        let server = Server::start_as("huge");
        let before = server.memory();
        let huge = server.huge();
        let mut child = server.tune(&["--within", "60s"]).spawn().unwrap();
        wait_until("the phase", || reached(&server, huge));
        child.kill().unwrap();
        child.wait().unwrap();
        let split = ["apply", "--undo", "--plan", "out/largepages.txt"];
        let collapse = ["apply", "--plan", "out/largepages-before.txt"];
        for command in [&split[..], &collapse] {
            let output = server.run(command);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        assert_eq!(server.memory(), before);
    }
}

#[test]
fn a_process_that_ends_meanwhile_is_an_error() {
    let mut server = Server::start();
    let tune = server.tune(&["--within", "60s"]).spawn().unwrap();
    wait_until("the load", || !server.place.read("loads").is_empty());
    server.running.child.kill().unwrap();
    server.running.child.wait().unwrap();
    let output = tune.wait_with_output().unwrap();
    assert_fails(&output, 5, &["--pid", "ended"]);
}

#[test]
fn a_process_that_becomes_another_program_is_an_error() {
    if !thp_is_madvise() {
        return;
    }
    let server = Server::start_as("replaces");
    let tune = server.tune(&["--within", "60s"]).spawn().unwrap();
    wait_until("huge pages", || server.huge() >= CAN_BE_HUGE);
    server.place.write("go", "");
    let output = tune.wait_with_output().unwrap();
    assert_fails(&output, 5, &["executed another program"]);
    assert!(is_running(server.running.pid()));
}

/// The kernel does not split a huge page that a child shares.
#[test]
fn memory_that_cannot_be_restored_is_reported_with_the_command_for_later() {
    if !thp_is_madvise() {
        return;
    }
    let server = Server::start_as("shares");
    let tune = server.tune(&["--within", "120s"]).spawn().unwrap();
    wait_until("huge pages", || server.huge() >= CAN_BE_HUGE);
    server.place.write("go", "");
    wait_until("the child", || !server.place.read("shared").is_empty());
    kill(tune.id(), libc::SIGINT);
    let output = tune.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let answer = server.place.json("out/tune.json");
    let left = answer["live"]["unrestored_regions"].as_u64().unwrap();
    assert_eq!(left << 21, server.huge(), "{answer}");
    assert!(left > 0, "{answer}");
    let notes = answer["notes"].to_string();
    for part in [
        "another process shares",
        "apply --undo --plan out/largepages.txt",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    fs::remove_file(server.place.path("go")).unwrap();
    wait_until("its end", || {
        let undo = server.run(&["apply", "--undo", "--plan", "out/largepages.txt"]);
        undo.status.success() && server.huge() == 0
    });
}

/// Without CAP_SYS_NICE each call is made by the process itself, in a short stop.
#[test]
fn an_ordinary_user_can_do_it_with_an_own_process() {
    let place = Place::new();
    if !thp_is_madvise() || !is_root() || !has_program("setpriv") {
        eprintln!("skipped: not root, or THP is not madvise");
        return;
    }
    fs::set_permissions(place.as_path(), fs::Permissions::from_mode(0o777)).unwrap();
    for file in [tollfree(), library()] {
        fs::copy(file, place.path(file.file_name().unwrap())).unwrap();
    }
    let as_user = |command: &[&str]| {
        let mut user = Command::new("setpriv");
        user.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        user.args(command).current_dir(place.as_path());
        user.env("TMPDIR", place.as_path());
        user
    };
    let running = Running::start(&mut as_user(&["./faulty", "counts", "ready"]));
    wait_until("the server", || !place.read("ready").is_empty());
    let pid = running.pid().to_string();
    let tune = [
        "./tollfree",
        "--json",
        "tune",
        "--pid",
        &pid,
        "--for",
        "2s",
        "--within",
        "15s",
        "--window",
        "100ms",
        "-o",
        "out",
    ];
    let output = as_user(&tune).output().unwrap();
    let said = stderr(&output);
    if said.contains("ptrace_scope") {
        eprintln!("skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let answer = schema::json("tune", &output);
    assert_eq!(answer["live"]["stops"], true, "{answer}");
    assert!(
        answer["live"]["collapses"].as_u64().unwrap() > 0,
        "{answer}"
    );
    assert_eq!(answer["live"]["unrestored_regions"], 0, "{answer}");
    let server = Server { running, place };
    assert_eq!(server.huge(), 0);
}
