// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run`: who makes the heap huge, when the program is left as it is, and the summary.

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
use toll_model::anchor::{Anchor, AnchorKind, Frame, Level};
use toll_model::plan::{self, Estimate, Plan, Region, Verdict, Why};
use toll_model::profile::{Program, Source};

const TOLLFREE: &str = env!("CARGO_BIN_EXE_tollfree");
const SWITCH: &str = "glibc.malloc.hugetlb=1";
/// Bytes of heap that the program grows.
const HEAP: u64 = 24 * REGION;

/// Grows its heap in small blocks (of 64 KiB), allocates a block with a mapping of its own,
/// and prints how much of each is huge at the end: "HEAP BLOCK", kB. With a number it waits
/// for so many milliseconds before it looks; with `environment` it prints that instead.
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

/// A folder with the program in it.
struct Bench {
    folder: TempDir,
}

impl Bench {
    /// `None` without a C compiler, or where THP is not `madvise` (only then glibc heeds its switch).
    fn new(flags: &[&str]) -> Option<Bench> {
        preload::library();
        let mode = Thp::read(&Root::system()).map(|thp| thp.mode);
        if mode != Some(Mode::Madvise) {
            eprintln!("skipped: THP is {mode:?}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench { folder };
        let source = bench.path("grow.c");
        fs::write(&source, PROGRAM).unwrap();
        let options = [&["-O1", "-Wl,--build-id"], flags].concat();
        let compile = match flags {
            [] => common::compile,
            _ => common::compile_where_possible,
        };
        compile(&source, &bench.path("grow"), &options).then_some(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes `plan.toml` for the program.
    fn plan(&self, anchor: AnchorKind, verdict: Verdict, whole_heap: bool) {
        let path = self.path("grow");
        let anchor = Anchor {
            id: 0,
            kind: anchor,
            length: HEAP,
            misalignment: 0,
            level: Level::Exact,
        };
        let region = |number: u64| Region {
            anchor: 0,
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
            anchors: vec![anchor],
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
        run.current_dir(&self.folder).env_remove("GLIBC_TUNABLES");
        run
    }

    fn summary(&self) -> Value {
        let summary = fs::read(self.path("summary.json")).unwrap();
        let summary = serde_json::from_slice(&summary).unwrap();
        schema::check("run", &summary);
        summary
    }

    /// The variables that the program is given, of those that tollfree may set.
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

/// Bytes of huge heap and of the huge block, as the program printed them.
fn huge(output: &Output) -> (u64, u64) {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse::<u64>().unwrap() << 10);
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// An allocation of the program: one frame, wherever in it.
fn allocation(bench: &Bench) -> AnchorKind {
    let program = bench.path("grow");
    AnchorKind::Alloc {
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
    let Some(bench) = Bench::new(&[]) else { return };
    bench.plan(AnchorKind::Heap, Verdict::Huge, true);
    assert_eq!(bench.variables(&[]), [format!("GLIBC_TUNABLES={SWITCH}")]);
    let output = bench.run(&["--summary", "summary.json"], &["./grow"]);
    let summary = bench.summary();
    assert_eq!(summary["heap"], "allocator");
    assert_eq!(summary["parent"]["collapsed"], 0, "{summary}");
    assert_eq!(summary["parent"]["spent_ns"], 0, "nobody watches");
    // All but the part before the first boundary and the last region.
    assert!(huge(&output).0 >= HEAP - 2 * REGION, "{output:?}");
}

#[test]
fn a_plan_for_a_part_of_the_heap_leaves_it_to_the_watcher() {
    let Some(bench) = Bench::new(&[]) else { return };
    bench.plan(AnchorKind::Heap, Verdict::Huge, false);
    assert_eq!(bench.variables(&[]), [""; 0]);
    let output = bench.run(&["--summary", "summary.json"], &["./grow", "1000"]);
    let summary = bench.summary();
    assert_eq!(summary["heap"], "watcher");
    assert!(
        summary["parent"]["collapsed"].as_u64() > Some(0),
        "{summary}"
    );
    assert!(huge(&output).0 > 0, "{output:?}");
}

/// What the guide says of plans with `whole_heap`: glibc's switch cannot be limited to the heap.
#[test]
fn the_switch_makes_blocks_huge_that_the_plan_leaves() {
    let Some(bench) = Bench::new(&[]) else { return };
    bench.plan(AnchorKind::Heap, Verdict::Huge, false);
    assert_eq!(huge(&bench.run(&[], &["./grow"])).1, 0);
    bench.plan(AnchorKind::Heap, Verdict::Huge, true);
    assert!(huge(&bench.run(&[], &["./grow"])).1 > 0);
}

#[test]
fn a_static_program_gets_the_switch_as_well() {
    let Some(bench) = Bench::new(&["-static"]) else {
        return;
    };
    bench.plan(AnchorKind::Heap, Verdict::Huge, true);
    let output = bench.run(&["--summary", "summary.json"], &["./grow"]);
    assert_eq!(bench.summary()["heap"], "allocator");
    assert!(huge(&output).0 >= HEAP - 2 * REGION, "{output:?}");
}

#[test]
fn where_the_allocator_has_no_switch_the_watcher_collapses_the_heap() {
    let Some(bench) = Bench::new(&["-static"]) else {
        return;
    };
    // A C library that does not know the name of its switch.
    let mut program = fs::read(bench.path("grow")).unwrap();
    let name = b"glibc.malloc.hugetlb";
    while let Some(at) = program.windows(name.len()).position(|bytes| bytes == name) {
        program[at + name.len() - 1] = b'_';
    }
    fs::write(bench.path("grow"), program).unwrap();
    bench.plan(AnchorKind::Heap, Verdict::Leave, false);
    for options in [
        &["--summary", "summary.json"][..],
        &["--whole-heap", "--summary", "summary.json"],
    ] {
        let is_whole = options.len() > 2;
        let output = bench.run(options, &["./grow", "1000"]);
        let summary = bench.summary();
        assert_eq!(summary["heap"], if is_whole { "watcher" } else { "left" });
        assert_eq!(huge(&output).0 > 0, is_whole, "{output:?}");
        let note = summary["notes"].to_string();
        assert_eq!(note.contains("collapsed as it grows"), is_whole, "{note}");
    }
}

#[test]
fn what_the_user_tuned_is_kept() {
    let Some(bench) = Bench::new(&[]) else { return };
    bench.plan(AnchorKind::Heap, Verdict::Leave, false);
    let theirs = OsStr::new("glibc.malloc.check=0");
    let mut command = bench.command(&["--whole-heap"], &["sh", "-c", "echo $GLIBC_TUNABLES"]);
    // A plan for no program in particular.
    fs::write(bench.path("plan.toml"), "").unwrap();
    let output = command.env("GLIBC_TUNABLES", theirs).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("glibc.malloc.check=0:{SWITCH}\n")
    );
}

#[test]
fn a_plan_that_leaves_everything_leaves_the_program_alone() {
    let Some(bench) = Bench::new(&[]) else { return };
    bench.plan(allocation(&bench), Verdict::Huge, false);
    let names = |lines: Vec<String>| -> Vec<String> {
        let name = |line: String| line.split('=').next().unwrap().to_owned();
        let mut names: Vec<String> = lines.into_iter().map(name).collect();
        names.sort();
        names
    };
    assert_eq!(
        names(bench.variables(&[])),
        ["LD_PRELOAD", "TOLLFREE_ACTIONS"]
    );
    bench.plan(allocation(&bench), Verdict::Leave, false);
    assert_eq!(bench.variables(&[]), [""; 0]);
    bench.plan(AnchorKind::Heap, Verdict::Leave, false);
    assert_eq!(bench.variables(&[]), [""; 0]);
}

#[test]
fn summaries_keep_to_their_schema() {
    let Some(bench) = Bench::new(&[]) else { return };
    fs::write(bench.path("plan.toml"), "17592186044416\n").unwrap();
    let cases: [(&[&str], i64, i64); 3] = [
        (&["./grow"], 0, -1),
        (&["sh", "-c", "exit 7"], 7, -1),
        (&["sh", "-c", "kill -9 $$"], -1, 9),
    ];
    for (command, code, signal) in cases {
        let mut run = bench.command(&["--summary", "summary.json"], command);
        run.output().unwrap();
        let summary = bench.summary();
        let number = |name: &str| summary[name].as_i64().unwrap_or(-1);
        assert_eq!((number("exit_code"), number("signal")), (code, signal));
        assert_eq!(summary["policy"], "regions");
    }
    let mut broken = bench.summary();
    broken["heap"] = "somebody".into();
    assert_eq!(schema::errors("run", &broken).len(), 1);
}
