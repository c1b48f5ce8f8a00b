// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run`: what makes the heap huge, programs without the library, and the summary.

mod common;
mod preload;
mod schema;

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use toll_linux::Root;
use toll_linux::symbols::build_id;
use toll_linux::sys::{Mode, Thp};
use toll_model::REGION;
use toll_model::plan::{self, Estimate, Plan, Region, Verdict, Why};
use toll_model::profile::{Program, Source};
use toll_model::site::{Frame, Level, Site, SiteKind};

const TOLLFREE: &str = env!("CARGO_BIN_EXE_tollfree");
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
struct Fixture {
    directory: TempDir,
}

impl Fixture {
    /// `None` without a C compiler, or if THP is not `madvise` (glibc applies its tunable only
    /// then).
    fn new(flags: &[&str]) -> Option<Fixture> {
        preload::library();
        let mode = Thp::read(&Root::system()).map(|thp| thp.mode);
        if mode != Some(Mode::Madvise) {
            eprintln!("skipped: THP is {mode:?}");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let fixture = Fixture { directory };
        let source = fixture.path("grow.c");
        fs::write(&source, PROGRAM).unwrap();
        let options = [&["-O1", "-Wl,--build-id"], flags].concat();
        let compile = match flags {
            [] => common::compile,
            _ => common::compile_where_possible,
        };
        compile(&source, &fixture.path("grow"), &options).then_some(fixture)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes `plan.toml` for the program.
    fn plan(&self, site: SiteKind, verdict: Verdict, whole_heap: bool) {
        let path = self.path("grow");
        let site = Site {
            id: 0,
            kind: site,
            length: HEAP,
            misalignment: 0,
            level: Level::Exact,
        };
        let region = |number: u64| Region {
            site: 0,
            offset: number * REGION,
            length: REGION,
            level: Level::Exact,
            misses: 1.0,
            benefit_ns: 1.0,
            cost_ns: 0.0,
            verdict,
            why: match verdict {
                Verdict::Huge => Why::Pays,
                Verdict::Leave => Why::CostsMore,
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
            whole_heap,
            sites: vec![site],
            regions: (0..HEAP / REGION).map(region).collect(),
        };
        fs::write(self.path("plan.toml"), plan.to_toml().unwrap()).unwrap();
    }

    /// Runs a command under the plan, with a summary in `summary.json`.
    fn run(&self, options: &[&str], command: &[&str]) -> Output {
        let output = self.command(options, command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        output
    }

    fn command(&self, options: &[&str], command: &[&str]) -> Command {
        let mut run = Command::new(TOLLFREE);
        run.args(["run", "--plan", "plan.toml"])
            .args(options)
            .arg("--")
            .args(command);
        run.current_dir(&self.directory)
            .env_remove("GLIBC_TUNABLES");
        run
    }

    fn summary(&self) -> Value {
        let summary = fs::read(self.path("summary.json")).unwrap();
        let summary = serde_json::from_slice(&summary).unwrap();
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
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter(ours)
            .map(str::to_owned)
            .collect()
    }
}

/// Bytes of huge heap and of the huge block, as printed by the program.
fn huge(output: &Output) -> (u64, u64) {
    let text = String::from_utf8_lossy(&output.stdout);
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
            offset: 0x1234,
            symbol: None,
            source: None,
            function: None,
            nearest: None,
        })],
        class: 25,
        ordinal: 0,
        thread: 0,
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
    fs::write(fixture.path("grow"), program).unwrap();
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
    fs::write(fixture.path("plan.toml"), "").unwrap();
    let output = command.env("GLIBC_TUNABLES", theirs).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("glibc.malloc.check=0:{SWITCH}\n")
    );
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
    fs::write(fixture.path("plan.toml"), "17592186044416\n").unwrap();
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
