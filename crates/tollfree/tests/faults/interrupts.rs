// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ctrl-C in each phase of each command that takes time: child processes have ended, the results so
//! far are kept and marked, and the exit code is 130. `compare` and the first phase of `tune` are
//! in tests/compare.rs, `record --source accessed` in tests/cli.rs, `run` in tests/pass_through.

use std::fs;
use std::path::Path;
use std::process::{Child, Output};
use std::time::Duration;

use serde_json::Value;
use toll_model::cost::CostTable;
use toll_testkit::machine::thp_is_madvise;
use toll_testkit::output::{json, stderr};
use toll_testkit::process::{interrupt, is_running, wait_until};
use toll_testkit::schema;

use crate::place::{Place, give_cache, has_simulator};

/// Sends Ctrl-C, and checks the exit code.
fn stop(child: Child) -> Output {
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    output
}

/// The runs that ./faulty logged: the kind of parent, and its process id.
fn runs(place: &Place) -> Vec<(String, String)> {
    let log = place.read("runs");
    let words = log.lines().filter_map(|line| line.split_once(' '));
    words.map(|(who, pid)| (who.into(), pid.into())).collect()
}

/// When to send Ctrl-C in `tune`, and the expected message and files.
struct Phase {
    name: &'static str,
    /// Whether it is reached, by the results' directory and the runs so far.
    reached: fn(&Place) -> bool,
    /// Files that must exist afterwards, besides the answer and the page.
    keeps: &'static [&'static str],
}

fn recorded(place: &Place) -> usize {
    let runs = runs(place);
    runs.iter().filter(|(who, _)| who != "plain").count()
}

/// A run of another kind than the recording before it.
fn compares(place: &Place) -> bool {
    let runs = runs(place);
    let first = runs.iter().position(|(who, _)| who != "plain");
    first.is_some_and(|at| runs[at..].iter().any(|(who, _)| who == "plain"))
}

const PHASES: [Phase; 5] = [
    Phase {
        name: "upper bound",
        reached: |place| runs(place).len() > 1,
        keeps: &["upper-bound.json"],
    },
    Phase {
        name: "costs of this machine",
        reached: |place| is_older_than(&place.path("out/upper-bound.json"), JUST_AFTER),
        keeps: &["upper-bound.json"],
    },
    Phase {
        name: "profile",
        reached: |place| recorded(place) > 0,
        keeps: &["upper-bound.json", "profile.json"],
    },
    Phase {
        name: "comparison",
        reached: compares,
        keeps: &[
            "upper-bound.json",
            "profile.json",
            "plan.toml",
            "compare.json",
        ],
    },
    Phase {
        name: "second profile",
        reached: |place| place.path("out/compare.json").exists() && recorded(place) > 1,
        keeps: &[
            "upper-bound.json",
            "profile.json",
            "plan.toml",
            "compare.json",
            "profile-after.json",
        ],
    },
];

/// A step writes its results, then the next one begins; only time shows this.
const JUST_AFTER: Duration = Duration::from_millis(500);

fn is_older_than(file: &Path, age: Duration) -> bool {
    let written = fs::metadata(file).and_then(|metadata| metadata.modified());
    written.is_ok_and(|at| at.elapsed().is_ok_and(|now| now > age))
}

/// Fixed costs in place of this machine's own: on a busy machine, the measured ones may say that
/// huge pages do not pay.
fn write_costs(place: &Place, cache: &Place) {
    let mut calibrate = place.tollfree(&["calibrate", "--within", "1s"]);
    let output = calibrate.env("XDG_CACHE_HOME", cache.as_path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let mut files = fs::read_dir(cache.path("tollfree")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    let own = CostTable::from_json(fs::read(&file).unwrap()).unwrap();
    let mut table = CostTable::default_for(&own.cpu, &own.kernel, own.memory, own.tlb);
    table.complete = true;
    fs::write(&file, table.to_json().unwrap()).unwrap();
}

/// Starts `tune` on a program with a gain far above the noise.
fn tune(place: &Place, cache: &Place) -> Child {
    let tune = ["--json", "tune", "--within", "60s", "-o", "out", "--"];
    let program = ["./faulty", "gains", "runs", "2000000"];
    let mut command = place.tollfree(&[&tune[..], &program].concat());
    give_cache(&mut command, cache.as_path());
    command.spawn().unwrap()
}

#[test]
fn in_each_phase_of_tune() {
    if !has_simulator() || !thp_is_madvise() {
        return;
    }
    let cache = Place::new();
    for phase in PHASES {
        let place = Place::new();
        if phase.name == "profile" {
            write_costs(&place, &cache);
        }
        let mut child = tune(&place, &cache);
        let mut ended = || child.try_wait().unwrap().is_some();
        wait_until(phase.name, || (phase.reached)(&place) || ended());
        if phase.name == "second profile" && is_out_of_time(&place) {
            eprintln!("skipped: neighbours keep the comparison open, so pairs take all the time");
            child.wait().unwrap();
            continue;
        }
        let output = stop(child);
        let answer = json(&output);
        check_kept(&place, &phase, &answer);
    }
}

/// Whether the time limit ended the comparison.
fn is_out_of_time(place: &Place) -> bool {
    place.json("out/compare.json")["stopped"] == "time"
}

fn check_kept(place: &Place, phase: &Phase, answer: &Value) {
    schema::check("tune", answer);
    assert_eq!(place.json("out/tune.json"), *answer, "{}", phase.name);
    assert_eq!(answer["complete"], false, "{}", phase.name);
    let reason = answer["reason"].as_str().unwrap();
    let step = format!("in the step \"{}\"", phase.name);
    assert!(reason.contains(&step), "{step}: {reason}");
    for name in phase.keeps.iter().chain(&["report.html"]) {
        assert!(
            !place.read(format!("out/{name}")).is_empty(),
            "{step}: {name}"
        );
    }
    let out = fs::read_dir(place.path("out")).unwrap();
    let count = out.count();
    assert_eq!(
        count,
        phase.keeps.len() + 2,
        "{step}: something half-written"
    );
    for (_, pid) in runs(place) {
        assert!(!is_running(&pid), "{step}: a program was left running");
    }
    assert!(!place.names().iter().any(|name| name.starts_with(".tmp")));
}

#[test]
fn in_a_simulated_recording() {
    if !has_simulator() {
        return;
    }
    let place = Place::new();
    let record = ["record", "--source", "sim", "-o", "profile.json", "--"];
    let program = ["./faulty", "sleep", "runs"];
    let mut command = place.tollfree(&[&record[..], &program].concat());
    let child = command.spawn().unwrap();
    wait_until("the program", || !runs(&place).is_empty());
    let output = stop(child);
    let profile = place.json("profile.json");
    schema::check("profile", &profile);
    assert_eq!(profile["complete"], false);
    assert!(profile["sites"].to_string().contains("\"alloc\""));
    assert!(stderr(&output).contains("of a part of the run"));
    assert!(!is_running(&runs(&place)[0].1));
}

/// An incomplete table must not replace a complete one.
#[test]
fn in_a_calibration() {
    let place = Place::new();
    for (arguments, kept) in [(&["-o", "costs.json"][..], true), (&[], false)] {
        let all = [&["--json", "calibrate", "--within", "60s"][..], arguments].concat();
        let mut command = place.tollfree(&all);
        command.env("XDG_CACHE_HOME", place.path("cache"));
        let child = command.spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        wait_until("its handler of SIGINT", || catches_interrupts(&status));
        let output = stop(child);
        let table = schema::json("costs", &output);
        assert_eq!(table["complete"], false);
        let written = place.json("costs.json");
        assert!(!kept || written == table, "{written}");
        assert!(!place.path("cache/tollfree").exists());
    }
}

/// Whether a process handles SIGINT, by its /proc/PID/status.
fn catches_interrupts(status: &str) -> bool {
    let text = fs::read_to_string(status).unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (libc::SIGINT - 1)) != 0)
}

#[test]
fn in_a_run_under_a_plan() {
    let place = Place::new();
    place.write("list", "17592186044416\n");
    let run = ["run", "--plan", "list", "--summary", "summary.json", "--"];
    let program = ["./faulty", "sleep", "runs"];
    let child = place.tollfree(&[&run[..], &program].concat()).spawn();
    let child = child.unwrap();
    wait_until("the program", || !runs(&place).is_empty());
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(libc::SIGINT), "it ends as the program did");
    assert!(!is_running(&runs(&place)[0].1));
    assert!(!place.json("summary.json").is_null(), "the summary is kept");
}
