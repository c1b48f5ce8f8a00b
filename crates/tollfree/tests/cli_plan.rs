// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run --plan` finds a plan's allocations again: in the same build and in a rebuilt
//! program; reports those that no longer exist; and refuses a plan for another program.
//!
//! The plan is made from the allocation events of a run, without a simulator.

use std::fs;
use std::ops::Deref;
use std::process::{Command, Output};

use serde_json::Value;
use toll_linux::events::{EventFile, site_of};
use toll_linux::symbols::{Symbolizer, build_id};
use toll_model::plan::Verdict;
use toll_model::site::{Site, SiteKind};
use toll_model::{REGION, wire};
use toll_testkit::compiler::compile_text;
use toll_testkit::machine::has_huge_pages;
use toll_testkit::model::{plan, region, site};
use toll_testkit::output::stderr;
use toll_testkit::{Directory, tool};

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

struct Fixture(Directory);

impl Fixture {
    /// `None` without a C compiler, or if THP is off.
    fn new() -> Option<Fixture> {
        let fixture = Fixture(Directory::empty());
        let is_built = has_huge_pages() && fixture.build(&["-DNAME=wanted"]);
        is_built.then_some(fixture)
    }

    /// Builds `./program`; false without a C compiler.
    fn build(&self, flags: &[&str]) -> bool {
        let options = [&["-O1", "-Wl,--build-id"], flags].concat();
        compile_text(PROGRAM, &self.path("program"), &options)
    }

    /// Writes `plan.toml`, which makes the block of `wanted` huge.
    fn plan(&self) {
        let regions = (0..BLOCK / REGION).map(|number| region(0, number, Verdict::Huge));
        let plan = plan(&self.path("program"), vec![self.site()], regions.collect());
        self.write("plan.toml", plan.to_toml().unwrap());
    }

    /// The site of the block that `wanted` allocates.
    fn site(&self) -> Site {
        let events = EventFile::create(&self.path("events"), 1000).unwrap();
        let status = Command::new(self.path("program"))
            .env("LD_PRELOAD", tool::library())
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
        let kind = kinds.find(is_wanted).expect("the event of `wanted`");
        site(0, kind, BLOCK)
    }

    /// Runs `./program` under the plan; returns its output and the summary.
    fn run(&self, arguments: &[&str]) -> (Output, Value) {
        let run = ["run", "--plan", "plan.toml", "--summary", "summary"];
        let mut command = self.tollfree(&run);
        command.args(["--", "./program"]).args(arguments);
        (command.output().unwrap(), self.json("summary"))
    }
}

impl Deref for Fixture {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
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
        fixture
            .0
            .run(&["run", "--plan", "plan.toml", "--", program])
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
    let run = ["run", "--hugetlb", "--plan", "plan.toml", "--", "./program"];
    let output = fixture.0.run(&run);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
