// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune --pid`: a running process is measured, made huge, measured again, and its huge pages can
//! be split again.

use std::process::{Command, Output};

use toll_testkit::machine::thp_is_madvise;
use toll_testkit::output::{assert_fails, json, stderr};
use toll_testkit::process::{Running, interrupt, is_running, wait_until};
use toll_testkit::schema;

use crate::place::Place;

/// ./faulty as a server, stopped at the end of the test.
struct Server {
    running: Running,
    place: Place,
}

impl Server {
    fn start() -> Server {
        Server::start_as("serve")
    }

    fn start_as(how: &str) -> Server {
        let place = Place::new();
        let running = place.serve(how);
        Server { running, place }
    }

    fn pid(&self) -> String {
        self.running.pid().to_string()
    }

    /// Bytes in huge pages.
    fn huge(&self) -> u64 {
        let smaps = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.pid()));
        let smaps = smaps.unwrap();
        let line = smaps.lines().find_map(|l| l.strip_prefix("AnonHugePages:"));
        line.unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse::<u64>()
            .unwrap()
            << 10
    }

    /// Returns `tune --pid` with a look of this time, which writes `out`.
    fn command(&self, time: &str, more: &[&str]) -> Command {
        let pid = self.pid();
        let tune = ["--json", "tune", "--pid", &pid, "--for", time, "-o", "out"];
        self.place.tollfree(&[&tune[..], more].concat())
    }

    fn look(&self, time: &str, more: &[&str]) -> Output {
        self.command(time, more).output().unwrap()
    }

    /// `tune` with a load that is faster on a huge server, far above the noise.
    fn tune(&self, more: &[&str]) -> Command {
        let slow = format!(
            "echo load >>loads; if grep -q 'AnonHugePages: *0 kB' /proc/{}/smaps_rollup; \
             then sleep 0.2; else sleep 0.05; fi",
            self.pid()
        );
        self.command("1s", &[&["--workload", &slow], more].concat())
    }
}

#[test]
fn a_gain_is_measured_and_can_be_undone() {
    if !thp_is_madvise() {
        return;
    }
    let server = Server::start();
    let output = server.tune(&["--within", "20s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = schema::json("tune", &output);
    assert_eq!(answer["advice"], "apply", "{answer}");
    assert!(
        answer["speedup_all"]["low"].as_f64().unwrap() > 2.0,
        "{answer}"
    );
    assert!(answer["speedup"].is_null(), "there is no plan");
    // Its memory is mapped, not in the heap: no unmeasured change that may not fit is advised.
    assert_eq!(answer["permanent"].as_array().unwrap().len(), 0, "{answer}");
    let notes = answer["notes"].to_string();
    assert!(notes.contains("--plan out/largepages.txt --pid"), "{notes}");
    assert!(server.huge() >= 32 << 20);
    let undo = ["apply", "--undo", "--plan", "out/largepages.txt", "--pid"];
    let pid = server.pid();
    let output = server.place.run(&[&undo[..], &[&pid]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(server.huge(), 0);
}

#[test]
fn without_a_load_nothing_is_touched() {
    let server = Server::start();
    let output = server.look("1s", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = json(&output);
    assert_eq!(answer["advice"], "do-nothing");
    assert_eq!(answer["today"]["huge_bytes"], 0, "{answer}");
    assert!(answer["today"]["anonymous_bytes"].as_u64().unwrap() >= 48 << 20);
    if answer["reason"].as_str().unwrap().contains("--workload") {
        assert_eq!(server.huge(), 0);
    }
    assert!(!server.place.path("out/largepages.txt").exists());
}

/// An idle process gives no information, in particular not that it has no translation overhead.
#[test]
fn an_idle_process_without_a_load_is_undecided() {
    let server = Server::start_as("demand");
    let answer = json(&server.look("1s", &[]));
    assert_eq!(answer["answer"], "undecided", "{answer}");
    let reason = answer["reason"].as_str().unwrap();
    assert!(
        reason.contains("idle") && reason.contains("--workload"),
        "{reason}"
    );
}

/// The memory that a server touches shows only under its load.
#[test]
fn an_idle_server_is_looked_at_under_its_load() {
    let server = Server::start_as("demand");
    let load = [
        "--within",
        "30s",
        "--workload",
        "touch go; sleep 0.5; rm go",
    ];
    let output = server.look("3s", &load);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = json(&output);
    assert!(
        answer["look"]["working_set"].as_u64().unwrap() >= 24 << 20,
        "{answer}"
    );
}

/// The shares of time are those of a running process, and the spent time is reported.
#[test]
fn the_shares_of_the_time_are_announced_and_accounted_for() {
    let server = Server::start();
    let output = server.look("1s", &["--within", "20s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    let first = said.lines().next().unwrap_or_default();
    assert_eq!(first, "tollfree: at most 20 s: quick look 1.0 s");
    let spent = json(&output)["spent"].clone();
    assert_eq!(spent[0]["step"], "look", "{spent}");
    assert!(spent[0]["seconds"].as_f64().unwrap() >= 1.0, "{spent}");
}

/// A hint of the program stays on a range that it frees and reuses.
#[test]
fn hints_of_others_are_said_with_their_size() {
    let server = Server::start_as("reuses");
    let answer = schema::json("tune", &server.look("1s", &[]));
    let hints = &answer["look"]["hints"];
    for which in ["huge", "never"] {
        assert_eq!(hints[format!("{which}_mappings")], 1, "{answer}");
        assert_eq!(hints[format!("{which}_bytes")], 8 << 20, "{answer}");
    }
    let notes = answer["notes"].to_string();
    let part = "hints by the program itself or a library, no plan: 1 mapping (8 MiB) with \
                MADV_HUGEPAGE, 1 mapping (8 MiB) with MADV_NOHUGEPAGE";
    assert!(notes.contains(part), "{notes}");

    let plain = Server::start_as("demand");
    let notes = json(&plain.look("1s", &[]))["notes"].to_string();
    assert!(!notes.contains("hints"), "{notes}");
}

/// The process with the most memory may be the idle one.
#[test]
fn the_children_that_do_the_work_are_looked_at() {
    let server = Server::start_as("employs");
    let load = ["--within", "30s", "--workload", "touch go; sleep 0.5"];
    let output = server.look("3s", &load);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = json(&output);
    assert!(
        answer["look"]["working_set"].as_u64().unwrap() >= 20 << 20,
        "{answer}"
    );
}

/// A load that works only outside the recording is reported.
#[test]
fn a_load_that_fails_while_the_server_is_recorded_is_said() {
    if !thp_is_madvise() {
        return;
    }
    let place = Place::new();
    // Fails if the server runs under a recorder and no plan. Faster on a huge server, so that the
    // upper bound does not end the tune.
    let load = "set -- $(tail -n 1 runs); \
                case $1 in \
                simulated) exit 1;; \
                recorded) grep -qz ^TOLLFREE_ACTIONS= /proc/$2/environ || exit 1;; \
                esac; \
                if grep -q 'AnonHugePages: *0 kB' /proc/$2/smaps_rollup; then sleep 0.4; else sleep 0.1; fi";
    let tune = [
        "--json",
        "tune",
        "--within",
        "60s",
        "--for",
        "3s",
        "-o",
        "out",
        "--ready",
        "kill -0 $(tail -n 1 runs | cut -d ' ' -f 2)",
        "--workload",
        load,
        "--",
        "./faulty",
        "serve",
        "runs",
        "1000",
    ];
    let output = place.run(&tune);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let notes = json(&output)["notes"].to_string();
    assert!(
        notes.contains("during the recording: the profile and the plan are for a server"),
        "{notes}"
    );
}

#[test]
fn a_workload_that_fails_is_said_before_anything_is_judged() {
    let server = Server::start_as("demand");
    let pid = server.pid();
    let tune = ["tune", "--pid", &pid, "--for", "1s", "-o", "out"];
    let load = ["--workload", "echo no such user >&2; false"];
    let output = server.place.run(&[&tune[..], &load].concat());
    assert_fails(&output, 5, &["the workload", "no such user"]);
    assert!(!server.place.path("out").exists());
}

#[test]
fn ctrl_c_before_and_after_keeps_what_there_is() {
    if !thp_is_madvise() {
        return;
    }
    for huge in [false, true] {
        let server = Server::start();
        let child = server.tune(&["--within", "60s"]).spawn().unwrap();
        let loads = |server: &Server| server.place.read("loads").lines().count();
        wait_until("the load", || {
            loads(&server) > 0 && (!huge || server.huge() >= 32 << 20)
        });
        let so_far = loads(&server);
        if huge {
            wait_until("the load afterwards", || loads(&server) > so_far);
        }
        interrupt(child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        let answer = server.place.json("out/tune.json");
        schema::check("tune", &answer);
        assert_eq!(answer["complete"], false);
        assert_eq!(answer["advice"], "do-nothing");
        assert_eq!(server.place.path("out/largepages.txt").exists(), huge);
        assert!(
            is_running(server.running.pid()),
            "the process is not ours to end"
        );
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
