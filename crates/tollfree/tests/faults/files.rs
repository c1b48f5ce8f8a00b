// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that are truncated, of another kind, or for another program.

use std::fs;
use std::path::Path;
use std::process::Command;

use toll_testkit::output::{assert_fails, stderr};

use crate::place::Place;

/// A profile and a plan of ./faulty.
fn with_plan() -> Place {
    let place = Place::new();
    let (output, _) = place.record("accessed", &["./faulty"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let plan = ["plan", "profile.json", "--top", "4", "-o", "plan.toml"];
    let output = place.run(&plan);
    assert!(output.status.success(), "{}", stderr(&output));
    place
}

/// Lengths at which to truncate a file: throughout, and just before its end.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    (1..40).map(move |n| length * n / 40).chain([length - 2])
}

#[test]
fn a_profile_cut_anywhere_is_refused() {
    let place = with_plan();
    let whole = place.read("profile.json");
    fs::remove_file(place.path("plan.toml")).unwrap();
    for length in cuts(whole.trim_end().len()) {
        place.write("cut.json", &whole.as_bytes()[..length]);
        let output = place.run(&["plan", "cut.json", "-o", "plan.toml"]);
        assert_fails(&output, 3, &["cut.json"]);
        let output = place.run(&["report", "cut.json", "--html", "page.html"]);
        assert_fails(&output, 3, &["cut.json"]);
    }
    assert!(!place.path("plan.toml").exists() && !place.path("page.html").exists());
}

/// TOML that was truncated between two tables still parses, and would be half a plan.
#[test]
fn a_plan_cut_anywhere_is_refused() {
    let place = with_plan();
    let whole = place.read("plan.toml");
    let lines = whole.match_indices('\n').map(|(at, _)| at + 1);
    let ends = lines.filter(|at| whole[*at..].starts_with('\n') || whole[*at..].starts_with('['));
    let whole_length = whole.trim_end().len();
    for length in ends.chain(cuts(whole_length)).filter(|l| *l < whole_length) {
        place.write("cut.toml", &whole.as_bytes()[..length]);
        let output = place.run(&["run", "--plan", "cut.toml", "--", "touch", "ran"]);
        assert_fails(&output, 125, &["cut.toml"]);
    }
    place.write("cut.toml", &whole.as_bytes()[..whole_length / 2]);
    let own = std::process::id().to_string();
    let compare = ["compare", "--plan", "cut.toml", "--", "touch", "ran"];
    assert_fails(&place.run(&compare), 3, &["cut.toml"]);
    let apply = ["apply", "--plan", "cut.toml", "--pid", &own];
    assert_fails(&place.run(&apply), 3, &["cut.toml"]);
    assert!(!place.path("ran").exists());
}

#[test]
fn files_of_another_kind_are_named_by_every_reader() {
    let place = with_plan();
    place.write("elf", fs::read("/bin/true").unwrap());
    place.write("text", "dear diary\n");
    place.write(
        "newer",
        "{\"format\": \"tollfree-profile\", \"version\": 99}",
    );
    let own = std::process::id().to_string();
    for file in ["elf", "text", "newer", "profile.json"] {
        let compare = ["compare", "--plan", file, "--", "touch", "ran"];
        assert_fails(&place.run(&compare), 3, &[file]);
        let apply = ["apply", "--plan", file, "--pid", &own];
        assert_fails(&place.run(&apply), 3, &[file]);
    }
    for file in ["elf", "text", "newer", "plan.toml"] {
        assert_fails(&place.run(&["plan", file]), 3, &[file]);
        assert_fails(&place.run(&["report", file]), 3, &[file]);
        let costs = ["plan", "profile.json", "--costs", file];
        assert_fails(&place.run(&costs), 3, &[file]);
    }
    assert!(!place.path("ran").exists());
}

#[test]
fn a_plan_for_another_program_acts_on_nothing() {
    let place = with_plan();
    for command in ["run", "record", "compare"] {
        let output = ["-o", "again.json"].map(|word| (command == "record").then_some(word));
        let mut arguments = vec![command, "--plan", "plan.toml"];
        arguments.extend(output.into_iter().flatten());
        arguments.extend(["--", "touch", "ran"]);
        let code = if command == "compare" { 3 } else { 125 };
        assert_fails(&place.run(&arguments), code, &["faulty", "touch"]);
    }
    assert!(!place.path("ran").exists() && !place.path("again.json").exists());
}

#[test]
fn a_recording_of_perf_cut_anywhere_is_refused() {
    let place = Place::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/perf");
    let whole = fs::read(fixture.join("intel-pebs.perf.data")).unwrap();
    if Command::new("perf").arg("--version").output().is_err() {
        eprintln!("skipped: no perf");
        return;
    }
    for length in [9, 100, whole.len() / 3] {
        place.write("cut.data", &whole[..length]);
        let output = place.run(&["import", "cut.data", "-o", "profile.json"]);
        assert_fails(&output, 3, &["cut.data"]);
        assert!(!place.path("profile.json").exists(), "{length}");
    }
}

/// A damaged cache is treated as a missing one.
#[test]
fn a_damaged_cache_of_costs_is_passed_over() {
    let place = with_plan();
    let with_cache = |arguments: &[&str]| {
        let mut command = place.tollfree(arguments);
        command.env("XDG_CACHE_HOME", place.path("cache"));
        command.output().unwrap()
    };
    let output = with_cache(&["calibrate", "--within", "1s"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut tables = fs::read_dir(place.path("cache/tollfree")).unwrap();
    let table = tables.next().unwrap().unwrap().path();
    let whole = fs::read(&table).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"", b"\x7fELF"] {
        fs::write(&table, damaged).unwrap();
        let output = with_cache(&["plan", "profile.json"]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
}
