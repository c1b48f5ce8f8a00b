// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree why` on programs that have memory of each kind, on other users' processes, and on
//! machines that offer little.

mod machines;
mod processes;
mod programs;
mod questions;
mod services;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use toll_testkit::output::succeeds;
use toll_testkit::process::Running;
use toll_testkit::{Directory, compiler, schema};

/// A program that has memory of one kind; see tests/data/memory.c.
struct Memory {
    running: Running,
    /// Address of the memory.
    address: String,
}

impl Memory {
    /// Starts the program; `None`, with a message, if that is not possible here.
    fn start(directory: &Directory, kind: &str) -> Option<Memory> {
        Memory::with(directory, &[kind], |_| ())
    }

    fn with(
        directory: &Directory,
        arguments: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Option<Memory> {
        let program = directory.path("memory");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/memory.c");
        if !program.exists() && !compiler::compile(&source, &program, &["-O1"]) {
            return None;
        }
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::piped());
        prepare(&mut command);
        let mut running = Running::start(&mut command);
        let address = running.line();
        if address == "none" {
            eprintln!("skipped: no memory of the kind {arguments:?} here");
            return None;
        }
        Some(Memory { running, address })
    }

    fn pid(&self) -> String {
        self.running.pid().to_string()
    }

    /// The report of `why PID`.
    fn why(&self, directory: &Directory) -> Value {
        let report = schema::json("why", &directory.run(&["why", &self.pid(), "--json"]));
        check(&report);
        report
    }

    /// The mapping with the memory, of `why PID ADDRESS`.
    fn mapping(&self, directory: &Directory) -> Value {
        let line = ["why", &self.pid(), &self.address, "--json"];
        let report = schema::json("why", &directory.run(&line));
        check(&report);
        assert_eq!(report["mappings"].as_array().unwrap().len(), 1);
        report["mappings"][0].clone()
    }

    /// The text of `why PID`, as one line.
    fn text(&self, directory: &Directory) -> String {
        unwrapped(&succeeds(&directory.run(&["why", &self.pid()])))
    }
}

/// Text without its line breaks.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

fn bytes(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

/// (reason, bytes) of a mapping.
fn reasons(mapping: &Value) -> Vec<(&str, u64)> {
    let reasons = mapping["reasons"].as_array().unwrap().iter();
    reasons
        .map(|because| {
            (
                because["reason"].as_str().unwrap(),
                bytes(&because["bytes"]),
            )
        })
        .collect()
}

/// The bytes of a reason in the bill; 0 without it.
fn billed(report: &Value, reason: &str) -> u64 {
    let lines = report["bill"].as_array().unwrap().iter();
    let of = lines.filter(|line| line["reason"] == reason);
    of.map(|line| bytes(&line["bytes"])).sum()
}

fn sum<'a>(lines: impl IntoIterator<Item = &'a Value>, field: &str) -> u64 {
    lines.into_iter().map(|line| bytes(&line[field])).sum()
}

/// Everything adds up to the resident memory, exactly: the bill, and each mapping.
fn check(report: &Value) {
    let resident = bytes(&report["resident_bytes"]);
    assert_eq!(
        sum(report["bill"].as_array().unwrap(), "bytes"),
        resident,
        "{report:#}"
    );
    let parts = bytes(&report["huge_bytes"]) + bytes(&report["small_bytes"]);
    assert_eq!(parts, resident);
    let mappings = report["mappings"].as_array().unwrap();
    if mappings.is_empty() {
        return;
    }
    assert_eq!(sum(mappings, "resident_bytes"), resident);
    for mapping in mappings {
        let reasons = sum(mapping["reasons"].as_array().unwrap(), "bytes");
        let resident = bytes(&mapping["resident_bytes"]);
        assert_eq!(
            bytes(&mapping["huge_bytes"]) + reasons,
            resident,
            "{mapping:#}"
        );
        let is_explained = !mapping["fix"].is_null();
        let has_none = ["kernel", "copied"].map(Value::from);
        let first = mapping["reasons"][0]["reason"].clone();
        assert!(
            is_explained || reasons == 0 || has_none.contains(&first),
            "{mapping:#}"
        );
    }
}
