// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run --plan` finds a plan's allocations again: in the same build and in a rebuilt
//! program; reports those that no longer exist; and refuses a plan for another program.
//!
//! The plan is made from the allocation events of a run, without a simulator.

mod common;
mod preload;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use toll_linux::events::{EventFile, site_of};
use toll_linux::symbols::{Symbolizer, build_id};
use toll_model::plan::{self, Estimate, Plan, Region, Verdict, Why};
use toll_model::profile::{Program, Source};
use toll_model::site::{Level, Site, SiteKind};
use toll_model::{REGION, wire};

const TOLLFREE: &str = env!("CARGO_BIN_EXE_tollfree");
const BLOCK: u64 = 32 << 20;

/// Two sites with blocks of one size: `wanted` is planned, `other` is not. PAD moves all code after
/// it, NAME is the name of the planned function.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef PAD
__attribute__((noinline)) int pad(int a) {
    volatile int v[99];
    for (int i = 0; i < 99; i++) v[i] = a * i;
    return v[a];
}
#endif
__attribute__((noinline)) char *NAME(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
__attribute__((noinline)) char *other(size_t n) { char *p = malloc(n); memset(p, 2, n); return p; }
int main(int argc, char **argv) {
    size_t n = argc > 1 ? strtoul(argv[1], 0, 0) : 32u << 20;
#ifdef PAD
    if (argc > 9) printf("%d\n", pad(argc));
#endif
    char *a = other(n), *b = NAME(n);
    printf("%d\n", a[5] + b[7]);
    return 0;
}
"#;

struct Fixture {
    directory: TempDir,
}

impl Fixture {
    /// `None` without a C compiler, or if THP is off.
    fn new() -> Option<Fixture> {
        let directory = tempfile::tempdir().unwrap();
        let thp = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if !thp.is_ok_and(|modes| !modes.contains("[never]")) {
            eprintln!("skipped: no THP");
            return None;
        }
        let fixture = Fixture { directory };
        fixture.build(&["-DNAME=wanted"]).then_some(fixture)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Builds `./program`; false without a C compiler.
    fn build(&self, flags: &[&str]) -> bool {
        let options = [&["-O1", "-Wl,--build-id"], flags].concat();
        common::compile_text(PROGRAM, &self.path("program"), &options)
    }

    /// Writes `plan.toml`, which makes the block of `wanted` huge.
    fn plan(&self) {
        let program = self.path("program");
        let plan = Plan {
            format: plan::FORMAT.into(),
            version: plan::VERSION,
            program: Program {
                path: program.to_string_lossy().into_owned(),
                build_id: build_id(&program),
            },
            source: Source::Sim,
            cpu: "test".into(),
            saved_ns: Estimate::exact(1e6),
            saved_all_ns: Estimate::exact(1e6),
            baseline_ns: None,
            predicted_speedup: Estimate::exact(1.1),
            reason: "a test".into(),
            warnings: Vec::new(),
            thp_always: false,
            whole_heap: false,
            sites: vec![self.site()],
            regions: regions(),
        };
        fs::write(self.path("plan.toml"), plan.to_toml().unwrap()).unwrap();
    }

    /// The site of the block that `wanted` allocates.
    fn site(&self) -> Site {
        let events = EventFile::create(&self.path("events"), 1000).unwrap();
        let status = Command::new(self.path("program"))
            .env("LD_PRELOAD", preload::library())
            .env(wire::ENV_EVENTS, events.path())
            .status()
            .unwrap();
        assert!(status.success());
        let (modules, mut symbolizer) = (events.modules(), Symbolizer::new());
        let mut kinds = events
            .events()
            .into_iter()
            .filter(|event| event.kind == wire::EventKind::Malloc as u32)
            .map(|event| site_of(&event, &modules, &mut symbolizer));
        let is_wanted = |kind: &SiteKind| match kind {
            SiteKind::Alloc { frames, .. } => frames[0].symbol.as_deref() == Some("wanted"),
            _ => false,
        };
        Site {
            id: 0,
            kind: kinds.find(is_wanted).expect("the event of `wanted`"),
            length: BLOCK,
            misalignment: 0,
            level: Level::Exact,
        }
    }

    /// Runs `./program` under the plan; returns its output and the summary.
    fn run(&self, arguments: &[&str]) -> (Output, Value) {
        let mut command = Command::new(TOLLFREE);
        command.args([
            "run",
            "--plan",
            "plan.toml",
            "--summary",
            "summary",
            "--",
            "./program",
        ]);
        command.args(arguments).current_dir(&self.directory);
        let output = command.output().unwrap();
        let summary = fs::read(self.path("summary")).unwrap_or_default();
        (output, serde_json::from_slice(&summary).unwrap_or_default())
    }
}

fn regions() -> Vec<Region> {
    let region = |offset| Region {
        site: 0,
        offset,
        length: REGION,
        level: Level::Exact,
        misses: 1e6,
        benefit_ns: 1e6,
        cost_ns: 1e3,
        verdict: Verdict::Huge,
        why: Why::Pays,
        touched_pages: 512,
    };
    (0..BLOCK / REGION)
        .map(|number| region(number * REGION))
        .collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// At least this much of one block, but not of two, must be advised: its ends lie in regions shared
/// with other memory.
fn is_one_block(advised: &Value, block: u64) -> bool {
    let advised = advised.as_u64().unwrap();
    advised >= block - 2 * REGION && advised <= block + REGION
}

#[test]
fn the_same_build_matches_exactly() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.plan();
    let (output, summary) = fixture.run(&[]);
    assert_eq!(stderr(&output), "");
    assert_eq!(output.stdout, b"3\n");
    assert_eq!(summary["blocks"]["exact"], 1, "{summary}");
    assert_eq!(summary["blocks"]["other"], 1, "{summary}");
    assert!(
        is_one_block(&summary["blocks"]["advised"], BLOCK),
        "{summary}"
    );
    assert!(summary["huge_peak"].as_u64().unwrap() <= BLOCK, "{summary}");
    assert_eq!(summary["lost"], serde_json::json!([]));
}

#[test]
fn another_size_matches_its_class() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.plan();
    let (output, summary) = fixture.run(&["100000000"]);
    assert_eq!(stderr(&output), "");
    assert_eq!(summary["blocks"]["class"], 1, "{summary}");
    assert_eq!(summary["blocks"]["exact"], 0, "{summary}");
    assert!(
        is_one_block(&summary["blocks"]["advised"], 100_000_000),
        "{summary}"
    );
}

#[test]
fn a_rebuilt_program_matches_by_function() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.plan();
    let before = build_id(&fixture.path("program"));
    assert!(fixture.build(&["-DNAME=wanted", "-DPAD"]));
    assert_ne!(build_id(&fixture.path("program")), before);
    let (output, summary) = fixture.run(&[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("another build"),
        "{}",
        stderr(&output)
    );
    assert_eq!(summary["lost"], serde_json::json!([]), "{summary}");
    assert_eq!(summary["blocks"]["class"], 1, "{summary}");
    assert!(
        is_one_block(&summary["blocks"]["advised"], BLOCK),
        "{summary}"
    );
}

#[test]
fn a_call_site_that_is_gone_is_named_and_nothing_is_advised() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.plan();
    assert!(fixture.build(&["-DNAME=renamed"]));
    let (output, summary) = fixture.run(&[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"3\n");
    assert!(stderr(&output).contains("wanted"), "{}", stderr(&output));
    let lost = summary["lost"][0].as_str().unwrap();
    assert!(lost.contains("wanted"), "{summary}");
    assert_eq!(summary["blocks"]["advised"], 0, "{summary}");
}

#[test]
fn a_plan_for_another_program_is_refused() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.plan();
    fs::copy(fixture.path("program"), fixture.path("same-program")).unwrap();
    let run = |program: &str| {
        let mut command = Command::new(TOLLFREE);
        command.args(["run", "--plan", "plan.toml", "--", program]);
        command.current_dir(&fixture.directory).output().unwrap()
    };
    let output = run("/bin/true");
    assert_eq!(output.status.code(), Some(125));
    let said = stderr(&output);
    assert!(
        said.contains("/bin/true") || said.contains("/usr/bin/true"),
        "{said}"
    );
    assert!(said.contains("program"), "{said}");
    // A copy is the same program, by its build-id.
    assert_eq!(run("./same-program").status.code(), Some(0));
}

#[test]
fn hugetlb_is_not_for_plans() {
    let Some(fixture) = Fixture::new() else {
        return;
    };
    fixture.plan();
    let mut command = Command::new(TOLLFREE);
    command.args(["run", "--hugetlb", "--plan", "plan.toml", "--", "./program"]);
    let output = command.current_dir(&fixture.directory).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
