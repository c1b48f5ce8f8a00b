// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command line: listings, and messages for invalid input.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

const SCENARIO: &str = include_str!("../../../lab/scenarios/random-access.toml");

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("toll-lab").unwrap();
    command
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

/// Runs the program, expects this exit status, and returns its stderr.
fn fails(arguments: &[&str], status: i32) -> String {
    let output = lab(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    said
}

fn scenario_file(directory: &TempDir, text: &str) -> String {
    let path = directory.path().join("mine.toml");
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn every_scenario_is_listed_with_one_line() {
    let output = lab(&["list"]).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/scenarios"));
    assert_eq!(listed.lines().count(), files.unwrap().count());
    for name in [
        "inference-over-memory",
        "inference-tiered",
        "inference-multitenant",
        "fault-tail",
        "econ-throughput",
        "morsel-map",
        "morsel-startup",
        "morsel-pipeline",
        "morsel-firsttouch",
        "morsel-pgtables",
        "morsel-blocks",
    ] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{name}");
    }
}

#[test]
fn scenarios_are_listed_as_json() {
    let output = lab(&["list", "--json"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for scenario in listed.as_array().unwrap() {
        for key in [
            "name",
            "description",
            "stands_for",
            "failure",
            "first_touch",
        ] {
            assert!(
                !scenario[key].as_str().unwrap().is_empty(),
                "{scenario}: {key}"
            );
        }
        assert!(
            !scenario["policies"].as_array().unwrap().is_empty(),
            "{scenario}"
        );
    }
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let said = fails(&["run", "nonsense"], 2);
    assert!(said.contains("nonsense: no such scenario"), "{said}");
    assert!(said.contains("random-access"), "{said}");
    let said = fails(&["kernel", "nonsense"], 2);
    assert!(said.contains("nonsense: no such variant"), "{said}");
    let said = fails(&["run", "random-access", "--preset", "nonsense"], 2);
    assert!(said.contains("nonsense: no such preset"), "{said}");
    let said = fails(&["run", "random-access", "--policy", "nonsense"], 2);
    assert!(
        said.contains("nonsense: no such policy in random-access"),
        "{said}"
    );
}

#[test]
fn a_file_system_that_is_none_of_the_three_is_refused() {
    let said = fails(&["selftest", "--fs", "vfat"], 2);
    assert!(
        said.contains("invalid value 'vfat'") && said.contains("ext4, xfs, btrfs"),
        "{said}"
    );
}

#[test]
fn an_unknown_outside_suite_or_kernel_is_refused() {
    let said = fails(&["outside", "--suite", "ltp"], 2);
    assert!(said.contains("mm, stress, files"), "{said}");
    let said = fails(&["outside", "--variant", "nonsense"], 2);
    assert!(said.contains("nonsense: no such variant"), "{said}");
}

#[test]
fn a_scenario_that_says_nonsense_is_refused_by_name() {
    let directory = TempDir::new().unwrap();
    let bad = |from: &str, to: &str, expected: &str| {
        assert!(SCENARIO.contains(from), "{from}");
        let path = scenario_file(&directory, &SCENARIO.replacen(from, to, 1));
        let said = fails(&["run", &path, "--short"], 3);
        assert!(said.contains(&path) && said.contains(expected), "{said}");
    };
    bad("icount", "icuont", "icuont");
    bad("cpus = 1", "cpus = 9", "9 CPUs");
    bad("cpus = 1", "cpus = -1", "cpus");
    bad("memory_mib = 768", "memory_mib = 20000", "20000 MiB");
    bad("within = 60", "within = 0", "within");
    bad("description", "= \"\"\ndescription", "TOML");
    let goal = |metric: &str, bound: &str, more: &str| {
        let goal = format!("[[goal]]\nname = \"g\"\nmetric = \"{metric}\"\nbound = \"{bound}\"\n");
        format!("{goal}{more}\n[short]")
    };
    bad(
        "[short]",
        &goal("wakls", "value <= 5", ""),
        "wakls: no such counter",
    );
    bad(
        "[short]",
        &goal("walks", "change <= -200 %", ""),
        "cannot be met",
    );
    bad(
        "[short]",
        &goal("walks", "value <= 5", ""),
        "subject: is required",
    );
    let with_subject = |more: &str| {
        let text = goal("walks", "value <= 5", more);
        let (subject, from) = ("subject = \"luf\"\nfirst_touch", "first_touch");
        let path = scenario_file(
            &directory,
            &SCENARIO
                .replacen(from, subject, 1)
                .replacen("[short]", &text, 1),
        );
        fails(&["run", &path, "--short"], 3)
    };
    let said = with_subject("ours = { policy = \"sometimes\" }");
    assert!(
        said.contains("sometimes: is not one of the scenario's policies"),
        "{said}"
    );
    let said = with_subject("ours = { variant = \"patched\" }");
    assert!(said.contains("patched: no such variant"), "{said}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let said = fails(&["run", "/nowhere/mine.toml"], 1);
    assert!(said.contains("/nowhere/mine.toml"), "{said}");
    let said = fails(&["kernel", "/nowhere/series"], 1);
    assert!(said.contains("/nowhere/series"), "{said}");
}

#[test]
fn conditions_are_checked_before_anything_runs() {
    let said = fails(&["run", "random-access", "--fail-if", "walks=5"], 2);
    assert!(said.contains("COUNTER>+5%"), "{said}");
}

#[test]
fn a_home_without_a_cache_is_an_error() {
    let output = lab(&["kernel"])
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
}

#[test]
fn a_patch_that_is_none_is_refused_by_name() {
    let directory = TempDir::new().unwrap();
    let series = directory.path().join("series");
    fs::write(&series, "0001-mine.patch\n").unwrap();
    let said = fails(&["kernel", &series.display().to_string()], 1);
    assert!(said.contains("0001-mine.patch"), "{said}");
    fs::write(directory.path().join("0001-mine.patch"), "not a patch\n").unwrap();
    let said = fails(&["kernel", &series.display().to_string()], 3);
    assert!(said.contains("0001-mine.patch"), "{said}");
}
