// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tune --pid`: the memory of a running process alternates between 4 KiB pages and huge pages.
//!
//! | file | tests |
//! |---|---|
//! | this one | what is observed, judged and said |
//! | `measures` | what the work is measured by |
//! | `undo` | that the page sizes from before are restored |

mod measures;
mod undo;

use std::process::{Command, Output};

use toll_testkit::machine::thp_is_madvise;
use toll_testkit::output::{assert_fails, json, stderr, stdout};
use toll_testkit::process::{Running, wait_until};
use toll_testkit::schema;

use crate::place::Place;

/// ./faulty as a server, stopped at the end of the test.
struct Server {
    running: Running,
    place: Place,
}

/// Bytes of the two blocks of ./faulty that can be huge: 46 MiB of 48, depending on their start.
const CAN_BE_HUGE: u64 = 42 << 20;

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

    fn loads(&self) -> usize {
        self.place.read("loads").lines().count()
    }

    /// Runs `tollfree ARGUMENTS --pid PID`.
    fn run(&self, arguments: &[&str]) -> Output {
        let pid = self.pid();
        self.place.run(&[arguments, &["--pid", &pid]].concat())
    }
}

#[test]
fn a_gain_is_measured_and_undone() {
    if !thp_is_madvise() {
        return;
    }
    let server = Server::start();
    let output = server.tune(&["--within", "120s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = schema::json("tune", &output);
    assert_eq!(answer["advice"], "apply", "{answer}");
    assert!(
        answer["speedup_all"]["low"].as_f64().unwrap() > 1.2,
        "{answer}"
    );
    assert!(answer["speedup"].is_null(), "there is no plan");
    assert!(answer["pairs"].as_u64().unwrap() >= 8, "{answer}");
    // Its memory is mapped, not in the heap: no unmeasured change that may not fit is advised.
    assert_eq!(answer["permanent"].as_array().unwrap().len(), 0, "{answer}");
    let live = &answer["live"];
    assert_eq!(live["measure"], "elapsed time of the workload");
    assert_eq!(live["unrestored_regions"], 0, "{answer}");
    assert!(live["regions"].as_u64().unwrap() << 21 >= CAN_BE_HUGE);
    assert!(live["collapses"].as_u64() >= live["regions"].as_u64());
    assert!(live["longest_pause_ns"].as_u64().unwrap() > 0);
    assert_eq!(server.huge(), 0, "undone");
    // The list that it leaves makes the gain last.
    let apply = server.run(&["apply", "--plan", "out/largepages.txt"]);
    assert!(apply.status.success(), "{}", stderr(&apply));
    assert!(server.huge() >= CAN_BE_HUGE);
}

#[test]
fn a_gain_stays_on_request() {
    if !thp_is_madvise() {
        return;
    }
    let server = Server::start();
    let output = server.tune(&["--within", "120s", "--keep"]).output();
    let answer = json(&output.unwrap());
    assert_eq!(answer["live"]["kept"], true, "{answer}");
    assert!(server.huge() >= CAN_BE_HUGE);
    let notes = answer["notes"].to_string();
    assert!(notes.contains("--plan out/largepages.txt --pid"), "{notes}");
    let undo = server.run(&["apply", "--undo", "--plan", "out/largepages.txt"]);
    assert!(undo.status.success(), "{}", stderr(&undo));
    assert_eq!(server.huge(), 0);
}

#[test]
fn people_get_both_page_sizes_the_pauses_and_what_to_do() {
    if !thp_is_madvise() {
        return;
    }
    let server = Server::start();
    let load = format!(
        "if grep -q 'AnonHugePages: *0 kB' /proc/{}/smaps_rollup; then sleep 0.2; fi",
        server.pid()
    );
    let tune = ["tune", "--for", "1s", "--within", "120s", "-o", "out"];
    let output = server.run(&[&tune[..], &["--workload", &load]].concat());
    let text = stdout(&output);
    for part in [
        "elapsed time of the workload, ",
        "  4 KiB      ",
        "  huge       ",
        "  speed-up   ",
        "  pauses     faults may have waited for ",
        "  restored   yes",
        "Apply it: with 4",
        "  right now  tollfree apply --plan out/largepages.txt --pid ",
    ] {
        assert!(text.contains(part), "{part:?}: {text}");
    }
    let page = server.place.read("out/report.html");
    assert!(page.contains("lapsed time of the workload"), "{page}");
}

/// A process that has huge pages already learns what they bring, and keeps them.
#[test]
fn huge_pages_that_are_there_are_judged_too() {
    if !thp_is_madvise() {
        return;
    }
    let server = Server::start_as("huge");
    let before = server.huge();
    assert!(before >= 30 << 20);
    let output = server.tune(&["--within", "120s"]).output().unwrap();
    let answer = schema::json("tune", &output);
    assert_eq!(answer["answer"], "do-nothing", "{answer}");
    assert!(answer["today"]["gain"]["low"].as_f64().unwrap() > 1.2);
    assert_eq!(answer["live"]["huge_before"], before);
    assert!(answer["reason"].as_str().unwrap().contains("already"));
    assert_eq!(server.huge(), before);
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
    assert_eq!(
        first,
        "tollfree: at most 20 s: quick look 1.0 s, comparison 19 s"
    );
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
