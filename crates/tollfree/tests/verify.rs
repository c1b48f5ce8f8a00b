// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan --verify`: each variant omits exactly its line, and the findings.

mod common;
mod preload;
mod schema;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use toll_linux::Root;
use toll_linux::symbols::build_id;
use toll_linux::sys::{Mode, Thp};
use toll_model::REGION;
use toll_model::plan::{self, Estimate, Plan, Region, Verdict, Why};
use toll_model::profile::{Program, Source};
use toll_model::site::{Level, Site, SiteKind};

/// Bytes of each block.
const REGIONS: u64 = 8;
const BLOCKS: [u64; 2] = [0x100_0000_0000, 0x200_0000_0000];

/// Fills two blocks at fixed addresses, and prints which of them is mostly huge: "1 0". With a
/// file, appends that to it instead.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
int main(int argc, char **argv) {
    unsigned long at[2] = { 0x10000000000, 0x20000000000 }, from, to, kb, huge[2] = { 0 };
    int block = -1;
    char line[512];
    for (int i = 0; i < 2; i++) {
        char *got = mmap((void *)at[i], 16 << 20, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got != (char *)at[i])
            return 9;
        memset(got, 1, 16 << 20);
    }
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            block = from == at[0] ? 0 : from == at[1] ? 1 : -1;
        if (block >= 0 && sscanf(line, "AnonHugePages: %lu", &kb) == 1)
            huge[block] = kb;
    }
    FILE *out = argc > 1 ? fopen(argv[1], "a") : stdout;
    fprintf(out, "%d %d\n", huge[0] > 8 << 10, huge[1] > 8 << 10);
    return 0;
}
"#;

/// A directory with the program and a plan that makes both blocks huge.
struct Fixture(TempDir);

impl Fixture {
    /// `None` without a C compiler, or if THP is not limited to advised memory.
    fn new() -> Option<Fixture> {
        preload::library();
        let mode = Thp::read(&Root::system()).map(|thp| thp.mode);
        if mode != Some(Mode::Madvise) {
            eprintln!("skipped: THP is {mode:?}");
            return None;
        }
        let fixture = Fixture(tempfile::tempdir().unwrap());
        if !common::compile_text(PROGRAM, &fixture.path("two"), &["-O1", "-Wl,--build-id"]) {
            return None;
        }
        fixture.plan(Verdict::Huge);
        Some(fixture)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes `plan.toml`. The second block has the larger benefit.
    fn plan(&self, verdict: Verdict) {
        let path = self.path("two");
        let site = |(id, start): (u32, u64)| Site {
            id,
            kind: SiteKind::Address { start },
            length: REGIONS * REGION,
            misalignment: 0,
            level: Level::Exact,
        };
        let region = |number: u64| Region {
            site: (number / REGIONS) as u32,
            offset: number % REGIONS * REGION,
            length: REGION,
            level: Level::Exact,
            misses: 1.0,
            benefit_ns: 1e6 * (1 + number / REGIONS) as f64,
            cost_ns: 1e5,
            verdict,
            why: if verdict == Verdict::Huge {
                Why::Pays
            } else {
                Why::CostsMore
            },
            touched_pages: 512,
        };
        let plan = Plan {
            format: plan::FORMAT.to_owned(),
            version: plan::VERSION,
            program: Program {
                build_id: build_id(&path),
                path: path.to_string_lossy().into_owned(),
            },
            source: Source::Sim,
            cpu: String::new(),
            saved_ns: Estimate::exact(1.0),
            saved_all_ns: Estimate::exact(1.0),
            baseline_ns: None,
            predicted_speedup: Estimate::exact(1.0),
            reason: "a test".to_owned(),
            warnings: Vec::new(),
            thp_always: false,
            whole_heap: false,
            sites: [0, 1].into_iter().zip(BLOCKS).map(site).collect(),
            regions: (0..2 * REGIONS).map(region).collect(),
        };
        fs::write(self.path("plan.toml"), plan.to_toml().unwrap()).unwrap();
    }

    fn verify(&self, more: &[&str], arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollfree"));
        command
            .args(["plan", "plan.toml", "--verify"])
            .args(more)
            .arg("--");
        command.arg(self.path("two")).args(arguments);
        command
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_variant_leaves_out_its_line_and_no_other() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let output = fixture.verify(&["5", "-n", "2", "--json"], &["log"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    schema::check("verify", &report);
    assert_eq!(
        (&report["pairs"], &report["output"]["state"]),
        (&2.into(), &"same".into())
    );
    // There are two, and the more valuable one comes first.
    let lines = report["lines"].as_array().unwrap();
    let predicted: Vec<f64> = lines
        .iter()
        .map(|it| it["predicted_ns"].as_f64().unwrap())
        .collect();
    assert_eq!(predicted, [8.0 * 1.9e6, 8.0 * 0.9e6]);
    assert_eq!(lines[0]["length"], REGIONS * REGION);
    assert!(
        lines
            .iter()
            .all(|line| line["saved_ns"]["low"].as_f64() <= line["saved_ns"]["high"].as_f64())
    );
    let log = fs::read_to_string(fixture.path("log")).unwrap();
    let seen: BTreeSet<&str> = log.lines().collect();
    assert_eq!(seen, BTreeSet::from(["1 1", "0 1", "1 0"]), "{log}");
    assert_eq!(log.lines().count(), 9);
}

#[test]
fn only_the_most_valuable_line_is_asked_about() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let output = fixture.verify(&["1", "-n", "2"], &["log"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let log = fs::read_to_string(fixture.path("log")).unwrap();
    let seen: BTreeSet<&str> = log.lines().collect();
    assert_eq!(seen, BTreeSet::from(["1 1", "1 0"]), "{log}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("15.2 ms") && text.contains("95 % intervals, 2 pairs"),
        "{text}"
    );
    let verdicts = ["confirmed", "contradicted", "cannot tell"];
    assert_eq!(
        verdicts.iter().filter(|it| text.contains(**it)).count(),
        1,
        "{text}"
    );
}

#[test]
fn output_that_a_line_changes_is_a_loud_error() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let output = fixture.verify(&["1", "-n", "2"], &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("OUTPUT DIFFERS in variant without 1"),
        "{}",
        stderr(&output)
    );
    let output = fixture.verify(&["1", "-n", "2", "--any-output"], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_verified() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.plan(Verdict::Leave);
    let output = fixture.verify(&["1"], &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("plan.toml: it makes nothing huge"),
        "{}",
        stderr(&output)
    );
    fs::write(fixture.path("plan.toml"), "2097152\n").unwrap();
    let output = fixture.verify(&["1"], &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("a list of addresses has no predictions"),
        "{}",
        stderr(&output)
    );
    fixture.plan(Verdict::Huge);
    assert_eq!(
        fixture
            .verify(&["1", "--within", "1ms"], &["log"])
            .status
            .code(),
        Some(2)
    );
    for usage in [&["0"][..], &["1", "-o", "x"], &["1", "--top", "3"]] {
        assert_eq!(
            fixture.verify(usage, &[]).status.code(),
            Some(2),
            "{usage:?}"
        );
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollfree"));
    command
        .args(["plan", "plan.toml", "--verify", "1"])
        .current_dir(&fixture.0);
    assert_eq!(
        command.output().unwrap().status.code(),
        Some(2),
        "no program"
    );
}
