// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan --verify`: each variant omits exactly its line, and the findings.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::process::Output;

use toll_model::REGION;
use toll_model::plan::{Region, Verdict};
use toll_model::site::SiteKind;
use toll_testkit::compiler::compile_text;
use toll_testkit::machine::thp_is_madvise;
use toll_testkit::model::{plan, region, site};
use toll_testkit::output::stderr;
use toll_testkit::{Directory, schema, tool};

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
struct Fixture(Directory);

impl Fixture {
    /// `None` without a C compiler, or if THP is not limited to advised memory.
    fn new() -> Option<Fixture> {
        tool::library();
        let fixture = Fixture(Directory::empty());
        let options = ["-O1", "-Wl,--build-id"];
        if !thp_is_madvise() || !compile_text(PROGRAM, &fixture.path("two"), &options) {
            return None;
        }
        fixture.plan(Verdict::Huge);
        Some(fixture)
    }

    /// Writes `plan.toml`. The second block has the larger benefit.
    fn plan(&self, verdict: Verdict) {
        let block =
            |(id, start): (u32, u64)| site(id, SiteKind::Address { start }, REGIONS * REGION);
        let part = |number: u64| Region {
            benefit_ns: 1e6 * (1 + number / REGIONS) as f64,
            cost_ns: 1e5,
            ..region((number / REGIONS) as u32, number % REGIONS, verdict)
        };
        let plan = plan(
            &self.path("two"),
            [0, 1].into_iter().zip(BLOCKS).map(block).collect(),
            (0..2 * REGIONS).map(part).collect(),
        );
        self.write("plan.toml", plan.to_toml().unwrap());
    }

    fn verify(&self, more: &[&str], arguments: &[&str]) -> Output {
        let mut command = self.tollfree(&["plan", "plan.toml", "--verify"]);
        command.args(more).arg("--").arg(self.path("two"));
        command.args(arguments).output().unwrap()
    }
}

impl Deref for Fixture {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

#[test]
fn each_variant_leaves_out_its_line_and_no_other() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    let output = fixture.verify(&["5", "-n", "2", "--json"], &["log"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = schema::json("verify", &output);
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
    let log = fixture.read("log");
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
    let log = fixture.read("log");
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
    fixture.write("plan.toml", "2097152\n");
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
    let output = fixture.run(&["plan", "plan.toml", "--verify", "1"]);
    assert_eq!(output.status.code(), Some(2), "no program");
}
