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
    let list = |arguments: &[&str]| {
        let output = lab(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = list(&["list"]);
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/scenarios"));
    let texts: Vec<String> = files
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let is_left_out = |text: &&String| text.contains("\nlisted = false\n");
    let left_out = texts.iter().filter(is_left_out).count();
    assert_eq!(list(&["list", "--all"]).lines().count(), texts.len());
    assert_eq!(listed.lines().count(), texts.len() - left_out);
    assert!(left_out > 0);
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

/// Ends with the first round of random sequences that reaches the number.
#[test]
fn crash_states_are_examined_and_planted_bugs_found() {
    let output = lab(&["crash-states", "--states", "1000000", "--json"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let states = figures["crash_states"].as_u64().unwrap();
    assert!((1_000_000..1_200_000).contains(&states), "{states}");
    assert_eq!(figures["lost"], 0);
    assert_eq!(figures["planted"], 24);
    assert_eq!(figures["caught"], 24);
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
fn the_former_name_of_a_command_gives_the_new_one() {
    let said = fails(
        &[
            "compare",
            "lookup",
            "--variant",
            "vanilla",
            "--change",
            "3%",
        ],
        2,
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("toll-lab run"), "{said}");
}

#[test]
fn a_report_needs_a_subject_and_its_scenarios() {
    let said = fails(&["report", "walks"], 2);
    assert!(said.contains("luf, econ, morsel"), "{said}");
    let said = fails(&["report", "luf", "fault-tail"], 2);
    assert!(said.contains("fault-tail: no scenario of luf"), "{said}");
    assert!(said.contains("inference-over-memory"), "{said}");
    let said = fails(&["report", "luf", "--from", "/nowhere/luf.json"], 1);
    assert!(said.contains("/nowhere/luf.json"), "{said}");
    let said = fails(&["report", "luf", "--jobs", "0"], 2);
    assert!(said.contains("--jobs"), "{said}");
}

/// The file of a report with one scenario: a policy, a section and its tail of page faults each.
fn stored_report(directory: &TempDir, tails: &[(&str, f64)]) -> String {
    let entry = |(policy, tail): &(&str, f64)| {
        let variant = if *policy == "econ" {
            "tollfree"
        } else {
            "vanilla"
        };
        serde_json::json!({
            "variant": variant, "policy": policy, "section": "main", "samples": 1,
            "counters": {}, "runs": [{ "fault_instr_tail": tail }],
            "fault_tail": [], "processes": {}, "cpus": [],
        })
    };
    let report = serde_json::json!({
        "format": "tollfree-lab-report", "version": 1, "subject": "econ",
        "results": [{
            "format": "tollfree-lab-results", "version": 1, "scenario": "fault-tail",
            "form": "short", "preset": "skylake", "judged_by": [],
            "environment": {
                "date": "2026-11-25",
                "host": { "cpu": "x", "cpus": 2, "memory_mib": 1, "kernel": "x" },
                "qemu": "10.0.2", "machine": { "cpus": 2, "memory_mib": 512 },
                "first_touch": "t", "fingerprint": "0", "kernels": [],
            },
            "results": tails.iter().map(entry).collect::<Vec<_>>(),
        }],
    });
    let path = directory.path().join("stored.json");
    fs::write(&path, report.to_string()).unwrap();
    path.display().to_string()
}

#[test]
fn the_status_of_a_report_is_that_of_its_goals() {
    let directory = TempDir::new().unwrap();
    let report = |tails: &[(&str, f64)], status: i32| {
        let path = stored_report(&directory, tails);
        let output = lab(&["report", "econ", "fault-tail", "--from", &path])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let stock = [("never", 10.0), ("always-defrag", 1000.0)];
    let with = |ours| [stock[0], stock[1], ("econ", ours)];
    assert!(report(&with(9.0), 0).contains("Goals: 2 met, 0 not met, 0 not shown."));
    assert!(report(&with(11.0), 1).contains("**not met**"));
    assert!(report(&stock, 3).contains("2 not measured"));
    let path = stored_report(&directory, &with(9.0));
    // A scenario that the file lacks.
    let said = fails(&["report", "econ", "--from", &path], 3);
    assert!(
        said.contains("not measured") && said.contains("fault-kinds"),
        "{said}"
    );
}

#[test]
fn several_files_make_one_report_and_the_first_with_a_scenario_counts() {
    let directories = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let stock = [("never", 10.0), ("always-defrag", 1000.0)];
    let with = |ours| [stock[0], stock[1], ("econ", ours)];
    let met = stored_report(&directories[0], &with(9.0));
    let not_met = stored_report(&directories[1], &with(11.0));
    let status = |files: [&str; 2]| {
        let from = ["--from", files[0], "--from", files[1]];
        let mut command = lab(&["report", "econ", "fault-tail"]);
        command.args(from).output().unwrap().status.code()
    };
    assert_eq!(status([&met, &not_met]), Some(0));
    assert_eq!(status([&not_met, &met]), Some(1));
    let other = directories[0].path().join("other.json");
    let empty = r#"{"format": "tollfree-lab-report", "version": 1, "results": []}"#;
    fs::write(&other, empty).unwrap();
    assert_eq!(status([&other.display().to_string(), &met]), Some(0));
}

#[test]
fn a_report_is_written_with_its_raw_data_beside_it() {
    let directory = TempDir::new().unwrap();
    let tails = [("never", 10.0), ("always-defrag", 1000.0), ("econ", 9.0)];
    let from = stored_report(&directory, &tails);
    let path = directory.path().join("econ.md");
    let written = path.display().to_string();
    let arguments = [
        "report",
        "econ",
        "fault-tail",
        "--from",
        &from,
        "--markdown",
        "--output",
        &written,
    ];
    let output = lab(&arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("{written}\n")
    );
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.starts_with("<!-- SPDX") && text.contains("Made by `toll-lab report econ fault-tail")
    );
    let raw = path.with_extension("json").display().to_string();
    let again = lab(&["report", "econ", "fault-tail", "--from", &raw, "--json"])
        .output()
        .unwrap();
    assert!(again.status.success(), "{again:?}");
    assert_eq!(fs::read(&raw).unwrap(), again.stdout);
}

#[test]
fn a_file_that_is_no_report_is_refused_by_name() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("other.json");
    for text in [
        "{}",
        "not JSON",
        r#"{"format": "x", "version": 1, "results": []}"#,
    ] {
        fs::write(&path, text).unwrap();
        let path = path.display().to_string();
        let said = fails(&["report", "econ", "--from", &path], 3);
        assert!(said.contains(&path), "{said}");
    }
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
