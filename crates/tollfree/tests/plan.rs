// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan` end to end: its table, its files, its JSON against the schemas, bad input.

mod schema;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::cost::{CostTable, TlbGeometry};
use toll_model::plan::Plan;
use toll_model::profile::{Profile, Program, Source};
use toll_model::site::{Frame, Level, SiteKind};
use toll_model::{PAGE, REGION};

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
struct Directory(tempfile::TempDir);

impl Directory {
    fn new(kind: SiteKind) -> Directory {
        Directory::with(&profile(kind))
    }

    fn with(profile: &Profile) -> Directory {
        let directory = Directory(tempfile::tempdir().unwrap());
        let tlb = TlbGeometry::preset("zen4").unwrap();
        let mut costs = CostTable::default_for("cpu", "6.12", 1 << 34, tlb);
        costs.complete = true;
        fs::write(directory.path("costs.json"), costs.to_json().unwrap()).unwrap();
        fs::write(directory.path("profile.json"), profile.to_json().unwrap()).unwrap();
        directory
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn plan(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tollfree"))
            .current_dir(self.0.path())
            .args(["plan", "profile.json", "--costs", "costs.json"])
            .args(args)
            .output()
            .unwrap()
    }
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn fails(output: &Output, code: i32, says: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.contains(says), "{error}");
    assert!(output.stdout.is_empty());
}

/// Adjacent blocks below 2 MiB share regions: they are planned and shown as one.
#[test]
fn small_arenas_are_planned_together_and_shown_in_one_line() {
    let directory = Directory::with(&arenas());
    let text = stdout(&directory.plan(&["-o", "plan.toml"]));
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
    let plan = Plan::from_toml(fs::read(directory.path("plan.toml")).unwrap()).unwrap();
    assert_eq!(plan.huge().count(), 64);
    let json: Value = serde_json::from_str(&stdout(&directory.plan(&["--json"]))).unwrap();
    schema::check("plan", &json);
}

#[test]
fn the_table_says_what_where_and_why() {
    let directory = Directory::new(block());
    let text = stdout(&directory.plan(&["-o", "plan.toml"]));
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
    let plan = Plan::from_toml(fs::read(directory.path("plan.toml")).unwrap()).unwrap();
    let huge: Vec<u64> = plan.huge().map(|region| region.offset / REGION).collect();
    assert_eq!(huge, [3, 17, 40]);
}

#[test]
fn report_tells_a_plan_from_a_damaged_profile() {
    let directory = Directory::new(block());
    stdout(&directory.plan(&["-o", "plan.toml"]));
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tollfree"))
        .args(["report", &directory.path("plan.toml").to_string_lossy()])
        .output()
        .unwrap();
    fails(&output, 3, "plan.toml: is a plan");
}

#[test]
fn json_keeps_to_the_schemas() {
    let directory = Directory::new(block());
    let plan: Value = serde_json::from_str(&stdout(&directory.plan(&["--json"]))).unwrap();
    schema::check("plan", &plan);
    assert_eq!(plan["regions"].as_array().unwrap().len(), 64);
    assert_eq!(plan["regions"][3]["verdict"], "huge");
    assert_eq!(plan["regions"][3]["site"], "main (skewed.c:40) 2^27 #0");
    for (file, name) in [("profile.json", "profile"), ("costs.json", "costs")] {
        let document: Value =
            serde_json::from_slice(&fs::read(directory.path(file)).unwrap()).unwrap();
        schema::check(name, &document);
    }
    // The schemas reject wrong documents.
    let mut wrong = plan.clone();
    wrong["regions"][0]["verdict"] = "perhaps".into();
    assert!(!schema::errors("plan", &wrong).is_empty());
}

#[test]
fn largepages_are_the_bases_of_the_top_regions() {
    let directory = Directory::new(SiteKind::Address { start: BASE });
    let expected: String = [3, 17, 40]
        .iter()
        .map(|n| format!("{}\n", BASE + n * REGION))
        .collect();
    let args = ["--top", "3", "--format", "largepages"];
    assert_eq!(stdout(&directory.plan(&args)), expected);
    stdout(&directory.plan(&[&args[..], &["-o", "largepages.txt"]].concat()));
    assert_eq!(
        fs::read_to_string(directory.path("largepages.txt")).unwrap(),
        expected
    );
    for n in [0, 1, 64] {
        let text = stdout(&directory.plan(&["--top", &n.to_string(), "--format", "largepages"]));
        assert_eq!(text.lines().count(), n);
    }
    let directory = Directory::new(block());
    fails(
        &directory.plan(&args),
        2,
        "main (skewed.c:40) 2^27 #0 moves in each run",
    );
}

#[test]
fn a_plan_is_not_overwritten_unasked() {
    let directory = Directory::new(block());
    fs::write(directory.path("plan.toml"), "mine").unwrap();
    fails(
        &directory.plan(&["-o", "plan.toml"]),
        2,
        "plan.toml: exists already",
    );
    assert_eq!(
        fs::read_to_string(directory.path("plan.toml")).unwrap(),
        "mine"
    );
    stdout(&directory.plan(&["-o", "plan.toml", "--force"]));
    assert_ne!(
        fs::read_to_string(directory.path("plan.toml")).unwrap(),
        "mine"
    );
}

#[test]
fn options_are_checked() {
    let directory = Directory::new(block());
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
    let text = stdout(&directory.plan(&["--budget", "4M"]));
    assert!(text.starts_with("Make 2 of 64"), "{text}");
    // Negligible in a run of ten hours.
    let text = stdout(&directory.plan(&["--baseline", "10h"]));
    assert!(text.starts_with("Do nothing: "), "{text}");
}

#[test]
fn bad_files_are_named() {
    let directory = Directory::new(block());
    let text = fs::read_to_string(directory.path("profile.json")).unwrap();
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
        fs::write(directory.path("profile.json"), content).unwrap();
        fails(&directory.plan(&["-o", "plan.toml"]), 3, says);
        assert!(!directory.path("plan.toml").exists());
    }
    fs::remove_file(directory.path("profile.json")).unwrap();
    fails(&directory.plan(&[]), 1, "profile.json: cannot be read");
}
