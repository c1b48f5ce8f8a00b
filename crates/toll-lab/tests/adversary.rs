// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab adversary`.

use assert_cmd::Command;
use serde_json::Value;
use toll_testkit::schema;

fn adversary(words: &[&str], status: i32) -> (String, String) {
    let assert = Command::new(env!("CARGO_BIN_EXE_toll-lab"))
        .arg("adversary")
        .args(words)
        .assert()
        .code(status);
    let output = assert.get_output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn json(words: &[&str], status: i32) -> Value {
    let words = [words, &["--json"]].concat();
    let got = serde_json::from_str(&adversary(&words, status).0).unwrap();
    schema::check("adversary", &got);
    got
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let (_, error) = adversary(&["--scenario", "nonsense"], 2);
    assert!(error.contains("nonsense: no such scenario"), "{error}");
    assert!(error.contains("munmap"), "{error}");
    let (_, error) = adversary(&["--plant", "nonsense"], 2);
    assert!(error.contains("nonsense: no such bug"), "{error}");
    adversary(&["nonsense"], 2);
}

#[test]
fn what_cannot_be_minimised_is_named() {
    let (_, error) = adversary(&["--minimise"], 2);
    assert!(error.contains("--minimise needs one --scenario"), "{error}");
    let (_, error) = adversary(&["--minimise", "--scenario", "munmap"], 2);
    let why = "munmap: cannot be minimised: it does not run mmfuzz";
    assert!(error.contains(why), "{error}");
    adversary(&["--minimise", "--scenario", "random", "--plants"], 2);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let (_, error) = adversary(&["vanilla", "--program", "/nonsense", "--run", "true"], 2);
    assert!(error.contains("/nonsense: is not a program"), "{error}");
    adversary(&["--run", "true", "--scenario", "munmap"], 2);
}

/// CPUs that leave and come back lose no event, and change no result.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn cpus_may_leave_and_come_back() {
    let online = "/sys/devices/system/cpu/cpu1/online";
    let line =
        format!("for i in 1 2 3; do echo 0 > {online}; echo 1 > {online}; stale munmap; done");
    let got = json(&["vanilla", "--run", &line], 0);
    let kernel = &got["kernels"][0];
    assert_eq!(kernel["scenarios"][0]["ended"], "passed");
    assert!(kernel["stale_capable"].as_u64().unwrap() > 100, "{kernel}");
}

/// The run before the reboot had no finding; it is no clean run.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_guest_that_restarts_is_an_error() {
    let line = "stale munmap 3; reboot -f";
    let (out, error) = adversary(&["vanilla", "--run", line], 5);
    assert!(!out.contains("unexplained reports 0"), "{out}");
    let why = "the guest switched itself off before it was done";
    assert!(error.contains(why), "{error}");
}

#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_right_kernel_gives_no_report() {
    let got = json(&["vanilla", "--scenario", "munmap", "--short"], 0);
    let kernel = &got["kernels"][0];
    assert_eq!(kernel["reports"].as_array().unwrap().len(), 0);
    assert_eq!(kernel["scenarios"][0]["ended"], "passed");
    assert_eq!(kernel["lost"], 0);
    assert!(kernel["checked"].as_u64().unwrap() > 1_000_000, "{kernel}");
    assert!(kernel["stale_capable"].as_u64().unwrap() > 100, "{kernel}");
}

/// What a report says about its cause; frames and counts depend on when disks answered.
fn cause(report: &Value) -> Vec<Value> {
    let keys = ["finding", "access", "address", "cpu", "possible_only"];
    let mut all: Vec<Value> = keys.iter().map(|key| report[key].clone()).collect();
    let calls = report["unmapped"]["calls"].as_array().unwrap();
    all.extend(calls.iter().rev().take(4).cloned());
    all
}

/// The report of a dropped flush names what unmapped, and repeats.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_planted_bug_is_found_and_repeats() {
    let words = ["vanilla", "--plant", "munmap-last-page", "--icount"];
    let (first, second) = (json(&words, 0), json(&words, 0));
    let plant = &first["plants"][0];
    assert_eq!(plant["caught"], true);
    let reports = plant["reports"].as_array().unwrap();
    let unmapped = |report: &Value| report["unmapped"]["calls"].to_string();
    let named = reports
        .iter()
        .filter(|it| unmapped(it).contains("__vm_munmap"));
    assert!(named.count() > 0, "{reports:#?}");
    let again = second["plants"][0]["reports"].as_array().unwrap();
    // Whether the freed page has another owner at a later access depends on the disks as well.
    let by_next_owner = "write to another owner's page";
    let causes = |reports: &[Value]| -> Vec<Vec<Value>> {
        let same = reports.iter().filter(|it| it["finding"] != by_next_owner);
        same.map(cause).collect()
    };
    assert_eq!(causes(reports), causes(again));
}

/// With the flushes of MADV_DONTNEED left out, what is left is such a call and what it needs.
#[test]
#[ignore = "boots a kernel: setup/setup.sh lab, then cargo test -p toll-lab -- --ignored"]
fn a_random_run_is_reduced_to_the_operations_that_matter() {
    let words = [
        "vanilla",
        "--minimise",
        "--scenario",
        "random",
        "--plant",
        "dontneed",
    ];
    let words = [&words[..], &["--json"]].concat();
    let got: Value = serde_json::from_str(&adversary(&words, 0).0).unwrap();
    schema::check("adversary-minimum", &got);
    assert_eq!(got["plant"], "dontneed");
    let left = got["operations"].as_u64().unwrap();
    assert!((1..=8).contains(&left), "{got}");
    let calls = got["report"]["unmapped"]["calls"].to_string();
    assert!(calls.contains("madvise"), "{calls}");
}
