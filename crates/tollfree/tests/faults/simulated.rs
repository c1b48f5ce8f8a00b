// SPDX-License-Identifier: MIT OR Apache-2.0
//! `record --source sim` on a C program: the names in its profile, and programs that crash or
//! replace themselves without losing the profile.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use serde_json::Value;
use toll_testkit::output::stderr;
use toll_testkit::schema;

use crate::place::{Place, give_cache, has_simulator};

/// Misses of all blocks allocated by this function; `None` if the profile has none.
fn misses_of(profile: &Value, function: &str) -> Option<f64> {
    let frames = profile["frames"].as_array()?;
    let number = frames.iter().position(|f| f["symbol"] == function)?;
    let sites = profile["sites"].as_array()?.iter();
    let own = sites.filter(|a| a["kind"] == "alloc" && a["frames"][0] == number);
    let misses = |site: &Value| -> f64 {
        let rows = site["rows"].as_array().unwrap().iter();
        rows.map(|row| row["misses"].as_f64().unwrap()).sum()
    };
    own.map(misses).reduce(|a, b| a + b)
}

fn has_warning(profile: &Value, part: &str) -> bool {
    let warnings = profile["warnings"].as_array().unwrap().iter();
    warnings.clone().any(|w| w.as_str().unwrap().contains(part))
}

/// The profile contains the hot block, however the program ended.
fn assert_hot(profile: &Value) {
    let hot = misses_of(profile, "hot_block").expect("hot_block");
    let cold = misses_of(profile, "cold_block").expect("cold_block");
    assert!(hot > 100_000.0 && hot > 10.0 * cold, "{hot} and {cold}");
}

#[test]
fn blocks_have_names_and_the_program_does_not_notice() {
    if !has_simulator() {
        return;
    }
    let place = Place::new();
    let alone = Command::new(place.path("faulty")).output().unwrap();
    let (output, profile) = place.record("sim", &["./faulty"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert_eq!(output.stdout, alone.stdout);
    assert!(output.stderr.starts_with(&alone.stderr), "stderr differs");
    schema::check("profile", &profile);
    assert_eq!(profile["source"], "sim");
    assert_eq!(profile["complete"], true);
    assert_hot(&profile);
    let own = ["/events\"", "libtoll_preload.so"];
    let text = profile["sites"].to_string();
    assert!(!own.iter().any(|part| text.contains(part)), "{text}");
}

#[test]
fn children_are_said_not_to_be_profiled() {
    if !has_simulator() {
        return;
    }
    let place = Place::new();
    let (output, profile) = place.record("sim", &["./faulty", "fork"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert_hot(&profile);
    for said in [stderr(&output), profile["warnings"].to_string()] {
        assert!(said.contains("a child process was not profiled"), "{said}");
    }
}

#[test]
fn a_program_that_replaces_itself_is_named() {
    if !has_simulator() {
        return;
    }
    let place = Place::new();
    let (output, profile) = place.record("sim", &["./faulty", "exec"]);
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert_hot(&profile);
    assert_eq!(profile["complete"], false);
    let part = "replaced itself by /bin/sh, which was not profiled";
    assert!(has_warning(&profile, part), "{}", profile["warnings"]);
}

#[test]
fn a_program_that_dies_leaves_its_profile() {
    if !has_simulator() {
        return;
    }
    let place = Place::new();
    for (how, signal) in [
        ("abort", libc::SIGABRT),
        ("kill", libc::SIGKILL),
        ("term", libc::SIGTERM),
    ] {
        let (output, profile) = place.record("sim", &["./faulty", how]);
        assert_eq!(output.status.signal(), Some(signal), "{how}");
        schema::check("profile", &profile);
        assert_hot(&profile);
    }
}

#[test]
fn a_program_that_closes_its_streams_leaves_its_profile() {
    if !has_simulator() {
        return;
    }
    let place = Place::new();
    let (output, profile) = place.record("sim", &["./faulty", "close"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    assert_eq!(profile["complete"], true);
    assert_hot(&profile);
}

/// The native time is unknown in a manual recording; `tune` knows it.
#[test]
fn a_simulation_that_takes_too_long_is_stopped() {
    if !has_simulator() {
        return;
    }
    let place = Place::new();
    let costs = ["calibrate", "--within", "1s"];
    let tune = ["--json", "tune", "--within", "60s", "-o", "out", "--"];
    let command = ["./faulty", "slow-when-simulated", "runs", "1000"];
    for arguments in [costs.to_vec(), [&tune[..], &command].concat()] {
        let mut tollfree = place.tollfree(&arguments);
        give_cache(&mut tollfree, &place.path("cache"));
        let output = tollfree.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let profile = place.json("out/profile.json");
    assert_eq!(profile["complete"], false, "{profile}");
    assert!(
        has_warning(&profile, "more than 20 times slower than natively"),
        "{}",
        profile["warnings"]
    );
    assert!(has_warning(&profile, "--source accessed"));
}
