// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree stat` on programs, processes, control groups and machines: real ones and fixtures.

mod groups;
mod machines;
mod processes;
mod programs;
mod questions;

use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use serde_json::Value;
use toll_testkit::output::stderr;
use toll_testkit::{Directory, schema};

/// A counter of a report.
fn counter<'a>(report: &'a Value, scope: &str, name: &str) -> &'a Value {
    let counters = report["counters"].as_array().unwrap();
    let is_it = |it: &&Value| it["name"] == name && it["scope"] == scope;
    let found = counters.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no {name} of the {scope} in {report:#}"))
}

fn value(report: &Value, scope: &str, name: &str) -> f64 {
    let counter = counter(report, scope, name);
    counter["value"]
        .as_f64()
        .unwrap_or_else(|| panic!("{counter}"))
}

/// Checks a report: it is valid, a counter has a value or a reason, and the losses add up.
fn check(report: &Value) {
    schema::check("stat", report);
    let mut sum = 0.0;
    for counter in report["counters"].as_array().unwrap() {
        let is_missing = counter["value"].is_null();
        assert_eq!(is_missing, counter["why_missing"].is_string(), "{counter}");
        if let Some(loss) = counter["loss_ns"].as_f64() {
            let bounds = &counter["loss_interval_ns"];
            let bound = |at: usize| bounds[at].as_f64().unwrap();
            assert!(bound(0) <= loss && loss <= bound(1), "{counter}");
            if counter["scope"] == report["scope"] {
                sum += loss;
            }
        }
    }
    let total = report["loss_ns"].as_f64().unwrap_or(0.0);
    assert!((total - sum).abs() <= sum * 1e-9, "{total} {sum}");
}

/// Gives Ctrl-C its effect: the parent of the tests may ignore it.
fn heeding_ctrl_c(command: &mut Command) -> &mut Command {
    // SAFETY: one async-signal-safe call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        })
    }
}

/// The only report that a command printed on stdout.
fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    let report = serde_json::from_slice(&output.stdout).unwrap();
    check(&report);
    report
}

/// The report in a file.
fn report_in(directory: &Directory, name: &str) -> Value {
    let report = directory.json(name);
    check(&report);
    report
}
