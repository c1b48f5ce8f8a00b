// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan` end to end: its table, its files, its JSON against the schemas, bad input.

use std::fs;
use std::ops::Deref;
use std::process::Output;
use std::sync::Arc;

use serde_json::Value;
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::cost::{CostTable, TlbGeometry};
use toll_model::plan::Plan;
use toll_model::profile::{Profile, Program, Source};
use toll_model::site::{Frame, Level, SiteKind};
use toll_model::{PAGE, REGION};
use toll_testkit::output::{assert_fails, succeeds};
use toll_testkit::{Directory, schema};

const BASE: u64 = 0x187_8000_0000;

/// 64 regions, three of them hot, at a fixed address or from one malloc.
fn profile(kind: SiteKind) -> Profile {
    let mut builder = ProfileBuilder::new();
    let id = builder.site(kind, 64 * REGION, 0, Level::Exact);
    for region in 0..64 {
        let misses = if [3, 17, 40].contains(&region) {
            40e6
        } else {
            10.0
        };
        let counts = Counts {
            misses,
            misses_huge: Some(0.0),
            l2_spared: 0.0,
            reuse_log2: Some(30.0),
            dependent: Some(1.0),
            ..Counts::default()
        };
        builder.count_span(id, region * REGION, 200 * PAGE, &counts);
    }
    builder.finish(meta())
}

fn meta() -> Meta {
    Meta {
        source: Source::Sim,
        source_detail: "test".to_owned(),
        program: Program::default(),
        command: vec!["skewed".to_owned()],
        complete: true,
        sampled: 1.0,
        observations: 1 << 20,
        instructions: None,
        native_ns: Some(40_000_000_000),
        footprint: Some(1 << 30),
        warnings: Vec::new(),
    }
}

fn block() -> SiteKind {
    let frame = Frame {
        module: "00ff".to_owned(),
        path: "/usr/bin/skewed".to_owned(),
        offset: 0x1234,
        symbol: Some("main".to_owned()),
        source: Some("skewed.c:40".to_owned()),
        function: None,
        nearest: None,
    };
    SiteKind::Alloc {
        frames: vec![Arc::new(frame)],
        class: 27,
        ordinal: 0,
        thread: 0,
        shared: false,
    }
}

/// Arenas of 1 MiB, each below the previous one, as Python maps them: 64 that are used heavily.
fn arenas() -> Profile {
    const ARENA: u64 = 1 << 20;
    let mut builder = ProfileBuilder::new();
    for number in 0..64 {
        let SiteKind::Alloc { frames, .. } = block() else {
            unreachable!()
        };
        let kind = SiteKind::Alloc {
            frames,
            class: 20,
            ordinal: number,
            thread: 0,
            shared: false,
        };
        let address = 0x7fff_0010_0000 - u64::from(number) * ARENA;
        let id = builder.site(kind, ARENA, address % REGION, Level::Exact);
        builder.address(id, address);
        let counts = Counts {
            misses: 2e6,
            misses_huge: Some(0.0),
            reuse_log2: Some(30.0),
            dependent: Some(1.0),
            ..Counts::default()
        };
        builder.count_span(id, 0, ARENA, &counts);
    }
    builder.finish(meta())
}

/// A directory with a profile and the cost table of a calibrated machine.
struct Recorded(Directory);

impl Recorded {
    fn new(kind: SiteKind) -> Recorded {
        Recorded::with(&profile(kind))
    }

    fn with(profile: &Profile) -> Recorded {
        let directory = Directory::empty();
        let tlb = TlbGeometry::preset("zen4").unwrap();
        let mut costs = CostTable::default_for("cpu", "6.12", 1 << 34, tlb);
        costs.complete = true;
        directory.write("costs.json", costs.to_json().unwrap());
        directory.write("profile.json", profile.to_json().unwrap());
        Recorded(directory)
    }

    fn plan(&self, args: &[&str]) -> Output {
        self.run(&[&["plan", "profile.json", "--costs", "costs.json"], args].concat())
    }

    /// The written `plan.toml`.
    fn planned(&self) -> Plan {
        Plan::from_toml(fs::read(self.path("plan.toml")).unwrap()).unwrap()
    }

    /// The output of a plan as JSON, which keeps to its schema.
    fn json_plan(&self) -> Value {
        let output = self.plan(&["--json"]);
        succeeds(&output);
        schema::json("plan", &output)
    }
}

impl Deref for Recorded {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

fn fails(output: &Output, code: i32, says: &str) {
    assert_fails(output, code, &[says]);
    assert!(output.stdout.is_empty());
}

#[test]
fn small_arenas_are_planned_together_and_shown_in_one_line() {
    let directory = Recorded::with(&arenas());
    let text = succeeds(&directory.plan(&["-o", "plan.toml"]));
    assert!(
        text.starts_with(
            "Make 32 of 32 regions huge (64 MiB): they hold 100 % of the 128 M misses recorded"
        ),
        "{text}"
    );
    let huge: Vec<&str> = text.lines().filter(|line| line.contains("huge:")).collect();
    assert_eq!(huge.len(), 1, "{text}");
    let line = "main (skewed.c:40) 2^20, 64 neighbours";
    assert!(huge[0].trim_start().starts_with(line), "{text}");
    assert!(
        huge[0].contains("64 MiB") && huge[0].contains("128 M"),
        "{text}"
    );
    let plan = directory.planned();
    assert_eq!(plan.huge().count(), 64);
    directory.json_plan();
}

#[test]
fn the_table_says_what_where_and_why() {
    let directory = Recorded::new(block());
    let text = succeeds(&directory.plan(&["-o", "plan.toml"]));
    assert!(
        text.starts_with("Make 3 of 64 regions huge (6 MiB)"),
        "{text}"
    );
    assert!(text.contains("main (skewed.c:40) 2^27 #0"), "{text}");
    for column in [
        "FUNCTION+OFFSET 2^N #K",
        "misses   TLB misses",
        "benefit  CPU time",
    ] {
        assert!(text.contains(column), "{column}: {text}");
    }
    assert!(
        text.contains("huge: pays") && text.contains("leave: "),
        "{text}"
    );
    let plan = directory.planned();
    let huge: Vec<u64> = plan.huge().map(|region| region.offset / REGION).collect();
    assert_eq!(huge, [3, 17, 40]);
}

#[test]
fn report_tells_a_plan_from_a_damaged_profile() {
    let directory = Recorded::new(block());
    succeeds(&directory.plan(&["-o", "plan.toml"]));
    let output = directory.run(&["report", "plan.toml"]);
    fails(&output, 3, "plan.toml: is a plan");
}

#[test]
fn json_keeps_to_the_schemas() {
    let directory = Recorded::new(block());
    let plan = directory.json_plan();
    assert_eq!(plan["regions"].as_array().unwrap().len(), 64);
    assert_eq!(plan["regions"][3]["verdict"], "huge");
    assert_eq!(plan["regions"][3]["site"], "main (skewed.c:40) 2^27 #0");
    for (file, name) in [("profile.json", "profile"), ("costs.json", "costs")] {
        schema::check(name, &directory.json(file));
    }
    // The schemas reject wrong documents.
    let mut wrong = plan.clone();
    wrong["regions"][0]["verdict"] = "perhaps".into();
    assert!(!schema::errors("plan", &wrong).is_empty());
}

#[test]
fn largepages_are_the_bases_of_the_top_regions() {
    let directory = Recorded::new(SiteKind::Address { start: BASE });
    let expected: String = [3, 17, 40]
        .iter()
        .map(|n| format!("{}\n", BASE + n * REGION))
        .collect();
    let args = ["--top", "3", "--format", "largepages"];
    assert_eq!(succeeds(&directory.plan(&args)), expected);
    succeeds(&directory.plan(&[&args[..], &["-o", "largepages.txt"]].concat()));
    assert_eq!(directory.read("largepages.txt"), expected);
    for n in [0, 1, 64] {
        let text = succeeds(&directory.plan(&["--top", &n.to_string(), "--format", "largepages"]));
        assert_eq!(text.lines().count(), n);
    }
    let directory = Recorded::new(block());
    fails(
        &directory.plan(&args),
        2,
        "main (skewed.c:40) 2^27 #0 moves in each run",
    );
}

#[test]
fn a_plan_is_not_overwritten_unasked() {
    let directory = Recorded::new(block());
    directory.write("plan.toml", "mine");
    fails(
        &directory.plan(&["-o", "plan.toml"]),
        2,
        "plan.toml: exists already",
    );
    assert_eq!(directory.read("plan.toml"), "mine");
    succeeds(&directory.plan(&["-o", "plan.toml", "--force"]));
    assert_ne!(directory.read("plan.toml"), "mine");
}

#[test]
fn options_are_checked() {
    let directory = Recorded::new(block());
    fails(
        &directory.plan(&["--budget", "much"]),
        2,
        "\"much\" is not a size",
    );
    fails(&directory.plan(&["--baseline", "0s"]), 2, "must be above 0");
    fails(
        &directory.plan(&["--top", "1", "--budget", "1G"]),
        2,
        "cannot be used with",
    );
    let text = succeeds(&directory.plan(&["--budget", "4M"]));
    assert!(text.starts_with("Make 2 of 64"), "{text}");
    // Negligible in a run of ten hours.
    let text = succeeds(&directory.plan(&["--baseline", "10h"]));
    assert!(text.starts_with("Do nothing: "), "{text}");
}

#[test]
fn bad_files_are_named() {
    let directory = Recorded::new(block());
    let text = directory.read("profile.json");
    let cases = [
        (
            text[..text.len() - 9].to_owned(),
            "profile.json: profile is damaged or cut short",
        ),
        (
            "PERFILE2".to_owned(),
            "profile.json: not a profile: this is perf.data",
        ),
        (
            text.replace("\"version\":1", "\"version\":7"),
            "this build reads version 1",
        ),
        (
            text.replacen("\"misses\":", "\"misses\":-", 1),
            "row 0: misses is -",
        ),
    ];
    for (content, says) in cases {
        directory.write("profile.json", content);
        fails(&directory.plan(&["-o", "plan.toml"]), 3, says);
        assert!(!directory.path("plan.toml").exists());
    }
    fs::remove_file(directory.path("profile.json")).unwrap();
    fails(&directory.plan(&[]), 1, "profile.json: cannot be read");
}
