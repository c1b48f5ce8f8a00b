// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run`: what makes the heap huge, programs without the library, and the summary.

use std::ffi::OsStr;
use std::fs;
use std::ops::Deref;
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;
use toll_linux::symbols::build_id;
use toll_model::REGION;
use toll_model::plan::Verdict;
use toll_model::site::{Frame, SiteKind};
use toll_testkit::compiler::{compile, compile_where_possible};
use toll_testkit::machine::thp_is_madvise;
use toll_testkit::model::{frame, plan, region, site};
use toll_testkit::output::{stdout, succeeds};
use toll_testkit::{Directory, schema, tool};

const SWITCH: &str = "glibc.malloc.hugetlb=1";
/// Bytes of heap that the program grows.
const HEAP: u64 = 24 * REGION;

/// Grows its heap in blocks of 64 KiB, allocates a block with a mapping of its own, and prints at
/// the end how much of each is huge: "HEAP BLOCK", kB. With a number, waits this many milliseconds
/// before measuring; with `environment`, prints that instead.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    unsigned long from, to, kb, heap = 0, other = 0;
    char line[512], *block;
    int is_heap = 0, is_block = 0;
    if (argc > 1 && !strcmp(argv[1], "environment")) {
        for (char **each = environ; *each; each++)
            puts(*each);
        return 0;
    }
    for (int i = 0; i < 24 * 32; i++)
        memset(malloc(64 << 10), 1, 64 << 10);
    block = malloc(32 << 20);
    memset(block, 1, 32 << 20);
    if (argc > 1)
        usleep(1000 * atoi(argv[1]));
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, smaps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            is_heap = strstr(line, "[heap]") != NULL;
            is_block = from < (unsigned long)block + (16 << 20) && (unsigned long)block + (16 << 20) < to;
        }
        if (sscanf(line, "AnonHugePages: %lu", &kb) == 1)
            heap += is_heap * kb, other += is_block * kb;
    }
    printf("%lu %lu\n", heap, other);
    return 0;
}
"#;

/// A directory with the program.
struct Fixture(Directory);

impl Fixture {
    /// `None` without a C compiler, or if THP is not `madvise` (glibc applies its tunable only
    /// then).
    fn new(flags: &[&str]) -> Option<Fixture> {
        tool::library();
        if !thp_is_madvise() {
            return None;
        }
        let fixture = Fixture(Directory::empty());
        let source = fixture.write("grow.c", PROGRAM);
        let options = [&["-O1", "-Wl,--build-id"], flags].concat();
        let compile = match flags {
            [] => compile,
            _ => compile_where_possible,
        };
        compile(&source, &fixture.path("grow"), &options).then_some(fixture)
    }

    /// Writes `plan.toml` for the program.
    fn plan(&self, kind: SiteKind, verdict: Verdict, whole_heap: bool) {
        let regions = (0..HEAP / REGION).map(|number| region(0, number, verdict));
        let sites = vec![site(0, kind, HEAP)];
        let mut plan = plan(&self.path("grow"), sites, regions.collect());
        plan.whole_heap = whole_heap;
        self.write("plan.toml", plan.to_toml().unwrap());
    }

    /// Runs a command under the plan, with a summary in `summary.json`.
    fn run(&self, options: &[&str], command: &[&str]) -> Output {
        let output = self.command(options, command).output().unwrap();
        succeeds(&output);
        output
    }

    fn command(&self, options: &[&str], command: &[&str]) -> Command {
        let mut run = self.tollfree(&["run", "--plan", "plan.toml"]);
        run.args(options).arg("--").args(command);
        run.env_remove("GLIBC_TUNABLES");
        run
    }

    fn summary(&self) -> Value {
        let summary = self.json("summary.json");
        schema::check("run", &summary);
        summary
    }

    /// The environment variables of the program, of those that tollfree may set.
    fn variables(&self, options: &[&str]) -> Vec<String> {
        let output = self.run(options, &["./grow", "environment"]);
        let ours = |line: &&str| {
            ["LD_PRELOAD=", "TOLLFREE_", "GLIBC_"]
                .iter()
                .any(|name| line.starts_with(name))
        };
        stdout(&output)
            .lines()
            .filter(ours)
            .map(str::to_owned)
            .collect()
    }
}

impl Deref for Fixture {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

/// Bytes of huge heap and of the huge block, as printed by the program.
fn huge(output: &Output) -> (u64, u64) {
    let text = stdout(output);
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse::<u64>().unwrap() << 10);
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// An allocation of the program: one frame, at any offset.
fn allocation(fixture: &Fixture) -> SiteKind {
    let program = fixture.path("grow");
    SiteKind::Alloc {
        frames: vec![Arc::new(Frame {
            module: build_id(&program),
            path: program.to_string_lossy().into_owned(),
            symbol: None,
            function: None,
            ..frame(0x1234)
        })],
        class: 25,
        ordinal: 0,
        thread: 0,
        shared: false,
    }
}

#[test]
fn a_plan_for_the_whole_heap_leaves_it_to_the_allocator() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    fixture.plan(SiteKind::Heap, Verdict::Huge, true);
    assert_eq!(fixture.variables(&[]), [format!("GLIBC_TUNABLES={SWITCH}")]);
    let output = fixture.run(&["--summary", "summary.json"], &["./grow"]);
    let summary = fixture.summary();
    assert_eq!(summary["heap"], "allocator");
    assert_eq!(summary["parent"]["collapsed"], 0, "{summary}");
    assert_eq!(summary["parent"]["spent_ns"], 0, "nobody watches");
    // All except the part before the first boundary and the last region.
    assert!(huge(&output).0 >= HEAP - 2 * REGION, "{output:?}");
}

#[test]
fn a_plan_for_a_part_of_the_heap_leaves_it_to_the_watcher() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    fixture.plan(SiteKind::Heap, Verdict::Huge, false);
    assert_eq!(fixture.variables(&[]), [""; 0]);
    let output = fixture.run(&["--summary", "summary.json"], &["./grow", "1000"]);
    let summary = fixture.summary();
    assert_eq!(summary["heap"], "watcher");
    assert!(
        summary["parent"]["collapsed"].as_u64() > Some(0),
        "{summary}"
    );
    assert!(huge(&output).0 > 0, "{output:?}");
}

/// The guide's statement on plans with `whole_heap`: glibc's tunable cannot be limited to the heap.
#[test]
fn the_switch_makes_blocks_huge_that_the_plan_leaves() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    fixture.plan(SiteKind::Heap, Verdict::Huge, false);
    assert_eq!(huge(&fixture.run(&[], &["./grow"])).1, 0);
    fixture.plan(SiteKind::Heap, Verdict::Huge, true);
    assert!(huge(&fixture.run(&[], &["./grow"])).1 > 0);
}

#[test]
fn a_static_program_gets_the_switch_as_well() {
    let Some(fixture) = Fixture::new(&["-static"]) else {
        return;
    };
    fixture.plan(SiteKind::Heap, Verdict::Huge, true);
    let output = fixture.run(&["--summary", "summary.json"], &["./grow"]);
    assert_eq!(fixture.summary()["heap"], "allocator");
    assert!(huge(&output).0 >= HEAP - 2 * REGION, "{output:?}");
}

#[test]
fn where_the_allocator_has_no_switch_the_watcher_collapses_the_heap() {
    let Some(fixture) = Fixture::new(&["-static"]) else {
        return;
    };
    // A C library without the name of its tunable.
    let mut program = fs::read(fixture.path("grow")).unwrap();
    let name = b"glibc.malloc.hugetlb";
    while let Some(at) = program.windows(name.len()).position(|bytes| bytes == name) {
        program[at + name.len() - 1] = b'_';
    }
    fixture.write("grow", program);
    fixture.plan(SiteKind::Heap, Verdict::Leave, false);
    for options in [
        &["--summary", "summary.json"][..],
        &["--whole-heap", "--summary", "summary.json"],
    ] {
        let is_whole = options.len() > 2;
        let output = fixture.run(options, &["./grow", "1000"]);
        let summary = fixture.summary();
        assert_eq!(summary["heap"], if is_whole { "watcher" } else { "left" });
        assert_eq!(huge(&output).0 > 0, is_whole, "{output:?}");
        let note = summary["notes"].to_string();
        assert_eq!(note.contains("collapsed as it grows"), is_whole, "{note}");
    }
}

#[test]
fn what_the_user_tuned_is_kept() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    fixture.plan(SiteKind::Heap, Verdict::Leave, false);
    let theirs = OsStr::new("glibc.malloc.check=0");
    let mut command = fixture.command(&["--whole-heap"], &["sh", "-c", "echo $GLIBC_TUNABLES"]);
    // A plan without a program.
    fixture.write("plan.toml", "");
    let output = command.env("GLIBC_TUNABLES", theirs).output().unwrap();
    assert_eq!(stdout(&output), format!("glibc.malloc.check=0:{SWITCH}\n"));
}

#[test]
fn a_plan_that_leaves_everything_leaves_the_program_alone() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    fixture.plan(allocation(&fixture), Verdict::Huge, false);
    let names = |lines: Vec<String>| -> Vec<String> {
        let name = |line: String| line.split('=').next().unwrap().to_owned();
        let mut names: Vec<String> = lines.into_iter().map(name).collect();
        names.sort();
        names
    };
    assert_eq!(
        names(fixture.variables(&[])),
        ["LD_PRELOAD", "TOLLFREE_ACTIONS"]
    );
    fixture.plan(allocation(&fixture), Verdict::Leave, false);
    assert_eq!(fixture.variables(&[]), [""; 0]);
    fixture.plan(SiteKind::Heap, Verdict::Leave, false);
    assert_eq!(fixture.variables(&[]), [""; 0]);
}

#[test]
fn summaries_keep_to_their_schema() {
    let Some(fixture) = Fixture::new(&[]) else {
        return;
    };
    fixture.write("plan.toml", "17592186044416\n");
    let cases: [(&[&str], i64, i64); 3] = [
        (&["./grow"], 0, -1),
        (&["sh", "-c", "exit 7"], 7, -1),
        (&["sh", "-c", "kill -9 $$"], -1, 9),
    ];
    for (command, code, signal) in cases {
        let mut run = fixture.command(&["--summary", "summary.json"], command);
        run.output().unwrap();
        let summary = fixture.summary();
        let number = |name: &str| summary[name].as_i64().unwrap_or(-1);
        assert_eq!((number("exit_code"), number("signal")), (code, signal));
        assert_eq!(summary["policy"], "regions");
    }
    let mut broken = fixture.summary();
    broken["heap"] = "somebody".into();
    assert_eq!(schema::errors("run", &broken).len(), 1);
}
