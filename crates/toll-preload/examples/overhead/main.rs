// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the overhead of the preload library without work to do: it is loaded, and no rule of
//! its plan ever matches. (With an empty plan it is not loaded at all: benches/preload/run.sh
//! checks that.)
//!
//! `cargo run --release -p toll-preload --example overhead [PAIRS]`
//!
//! 0. Milliseconds added to the start of an empty program: median of the differences of
//!    interleaved runs with a 95 % interval; and the number of system calls and page faults that
//!    the library adds. Goal: below 0.3.
//! 1. User CPU time of programs dominated by small allocations, relative to the same without the
//!    library: a ratio with a 95 % interval, from short interleaved runs. Goal: below 1.01.
//! 2. Nanoseconds added to one malloc + free that is not advised. Goal: below 1,000.
//!
//! Exits with status 1 if a goal is certainly missed.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use support::library;
use toll_model::stats::{median, ratio_of_rounds};
use toll_model::wire::{ANY, FrameMatch, Interval, MAX_FRAMES, Module, Rule};
use toll_testkit::actions::Actions;
use toll_testkit::trace::system_calls;

/// Maximum ratio of user times.
const GOAL: f64 = 1.01;
/// Maximum additional start time, ms.
const START_GOAL: f64 = 0.3;
/// Pairs of starts for each pair of part 1: a start takes a millisecond.
const STARTS: usize = 50;
/// Runs of each table entry of part 2.
const RUNS: usize = 15;

fn main() -> ExitCode {
    let pairs = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plan = directory.path().join("plan");
    rules_for_others(100).write(&plan);
    let pairs = pairs.unwrap_or(60);
    let start = print_start(directory.path(), pairs * STARTS, &plan);
    let times = print_ratios(directory.path(), pairs, &plan);
    let each = print_table(directory.path(), &plan);
    ExitCode::from(u8::from(!(start && times && each)))
}

/// Runs part 0; false if the goal is missed.
fn print_start(directory: &Path, pairs: usize, plan: &Path) -> bool {
    let program = compile(directory, "../../tests/data/empty.c");
    let run = |plan| command(&program, &[], plan);
    let mut added = Vec::new();
    for pair in 0..=pairs {
        let mut times = [0.0; 2];
        for variant in order(pair) {
            times[variant] = milliseconds(run((variant == 1).then_some(plan)));
        }
        if pair > 0 {
            added.push(times[1] - times[0]);
        }
    }
    let (low, middle, high) = median_interval(&mut added);
    println!("ms added to the start of an empty program, by a plan of 100 rules that never match");
    println!(
        "{:>23}: {middle:.3} [{low:.3}, {high:.3}], {pairs} pairs: {}",
        "start and end",
        met(low, high, START_GOAL)
    );
    let [(without, faults_without), (with, faults_with)] =
        [None, Some(plan)].map(|plan| system_calls(run(plan)));
    println!(
        "{:>23}: {} more system calls, {} more page faults\n",
        "exactly",
        with.len() as i64 - without.len() as i64,
        faults_with - faults_without
    );
    low < START_GOAL
}

/// Interleaved, so that drift affects both variants equally.
fn order(pair: usize) -> [usize; 2] {
    if pair % 2 == 0 { [0, 1] } else { [1, 0] }
}

/// Returns the elapsed milliseconds from the start of a program to its end.
fn milliseconds(mut command: Command) -> f64 {
    let begun = Instant::now();
    let status = command.status().expect("the program starts");
    assert!(status.success());
    begun.elapsed().as_secs_f64() * 1e3
}

/// Returns the median and its 95 % interval, from the ranks of the binomial distribution (normal
/// approximation, adequate from about 30 values on).
fn median_interval(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let half = 1.96 * count.sqrt() / 2.0;
    let at = |rank: f64| values[rank.clamp(0.0, count - 1.0) as usize];
    (
        at((count / 2.0 - half).floor()),
        at(count / 2.0),
        at((count / 2.0 + half).ceil()),
    )
}

/// Compares an interval with a goal to stay below.
fn met(low: f64, high: f64, goal: f64) -> &'static str {
    match (low < goal, high < goal) {
        (_, true) => "met",
        (true, false) => "cannot tell",
        (false, false) => "missed",
    }
}

/// Runs part 1; false if a goal is missed.
fn print_ratios(directory: &Path, pairs: usize, plan: &Path) -> bool {
    println!("user CPU time with a plan of 100 rules that never match / without the library");
    let programs = programs(directory);
    let ratio = |program: &Program| print_ratio(program, pairs, plan);
    programs.iter().map(ratio).fold(true, |all, met| all & met)
}

/// A short program dominated by small allocations.
struct Program {
    name: &'static str,
    path: PathBuf,
    arguments: Vec<String>,
    /// A variable of its environment.
    env: Option<(&'static str, &'static str)>,
}

/// Returns one of our own programs, and real ones if they are installed.
fn programs(directory: &Path) -> Vec<Program> {
    const PYTHON: &str = "d={}\nfor i in range(500000): d.setdefault(str(i%50000),[]).append((i,))";
    let json = directory.join("input.json");
    let record = |i: u64| {
        format!(
            "{{\"id\":{i},\"name\":\"n{}\",\"list\":[{i},2,3]}}",
            i % 997
        )
    };
    let records: Vec<String> = (0..60_000).map(record).collect();
    std::fs::write(&json, format!("[{}]", records.join(","))).expect("a JSON file");
    let all = [
        Program {
            name: "std::map of strings",
            path: compile(directory, "words.cc"),
            arguments: vec!["2".into()],
            env: None,
        },
        Program {
            name: "python3, all by malloc",
            path: "/usr/bin/python3".into(),
            arguments: vec!["-c".into(), PYTHON.into()],
            env: Some(("PYTHONMALLOC", "malloc")),
        },
        Program {
            name: "jq group_by",
            path: "/usr/bin/jq".into(),
            arguments: vec![
                "group_by(.name) | length".into(),
                json.to_string_lossy().into(),
            ],
            env: None,
        },
    ];
    all.into_iter()
        .filter(|program| program.path.exists())
        .collect()
}

/// Runs part 2; false if a goal is missed.
fn print_table(directory: &Path, plan: &Path) -> bool {
    println!("\nns of one malloc + free: median of {RUNS} runs, each its best round");
    println!(
        "{:>14} {:>10} {:>11} {:>9}",
        "", "without", "100 rules", "added"
    );
    let mut met = true;
    for source in ["blocks.c", "objects.cc"] {
        let program = compile(directory, source);
        let sizes = [
            ("64 B", 64),
            ("64 KiB", 64 << 10),
            ("1 MiB", 1 << 20),
            ("4 MiB", 4 << 20),
        ];
        for (name, bytes) in sizes {
            met &= print_nanoseconds(&format!("{name} {}", call(source)), bytes, &program, plan);
        }
    }
    met
}

fn call(source: &str) -> &'static str {
    if source.ends_with(".cc") {
        "new"
    } else {
        "malloc"
    }
}

fn compile(directory: &Path, source: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/overhead")
        .join(source);
    let to = directory.join(source.replace(['.', '/'], "-"));
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let status = Command::new(compiler)
        .args(["-O2", "-fno-builtin", "-o"])
        .args([&to, &from])
        .status();
    assert!(status.expect("a C compiler").success());
    to
}

/// Returns rules for call sites that the program does not have, in modules that it has not loaded,
/// for blocks of any length.
fn rules_for_others(count: u64) -> Actions {
    let mut actions = Actions::default();
    let mut module = Module {
        id_len: 20,
        id: [0x5a; 32],
        path: [0; 220],
    };
    module.path[0] = b'x';
    actions.modules.push(module);
    for index in 0..count {
        let frame = FrameMatch {
            module: 0,
            _pad: 0,
            low: index * 64,
            high: index * 64 + index % 2,
        };
        actions.rules.push(Rule {
            frames: [frame; MAX_FRAMES],
            frames_used: 1,
            ordinal: 0,
            thread: 0,
            _pad: 0,
            length_low: 1 << 20,
            length_high: u64::MAX,
            first: 0,
            count: 1,
        });
    }
    actions.intervals.push(Interval {
        start: 0,
        end: u64::MAX,
        advice: 1,
        _pad: 0,
    });
    assert_ne!(actions.rules[0].ordinal, ANY);
    actions
}

fn command(program: &Path, arguments: &[&str], actions: Option<&Path>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    if let Some(actions) = actions {
        command
            .env("LD_PRELOAD", library())
            .env("TOLLFREE_ACTIONS", actions);
    }
    command
}

/// Returns the user CPU seconds of a run.
#[allow(clippy::zombie_processes)] // wait4 waits, and tells what the run used
fn user_seconds(mut command: Command) -> f64 {
    let child = command
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    // SAFETY: zeros are a valid result to overwrite; the child is ours.
    let (status, usage) = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
        libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage);
        (status, usage)
    };
    assert!(std::process::ExitStatus::from_raw(status).success());
    usage.ru_utime.tv_sec as f64 + usage.ru_utime.tv_usec as f64 / 1e6
}

/// Returns false if the ratio is certainly above its goal.
fn print_ratio(program: &Program, pairs: usize, plan: &Path) -> bool {
    let run = |plan: Option<&Path>| {
        let arguments: Vec<&str> = program.arguments.iter().map(String::as_str).collect();
        let mut command = command(&program.path, &arguments, plan);
        command.envs(program.env);
        user_seconds(command)
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for pair in 0..=pairs {
        let mut times = [0.0; 2];
        // The first pair only warms up.
        for variant in order(pair) {
            times[variant] = run((variant == 1).then_some(plan));
        }
        if pair > 0 {
            without.push(times[0]);
            with.push(times[1]);
        }
    }
    let ratio = ratio_of_rounds(&with, &without, 0.95).expect("enough runs");
    println!(
        "{:>23}: {:.4} [{:.4}, {:.4}] of {:.3} s, {pairs} pairs: {}",
        program.name,
        ratio.median,
        ratio.low,
        ratio.high,
        median(&without).unwrap_or_default(),
        met(ratio.low, ratio.high, GOAL)
    );
    ratio.low < GOAL
}

fn nanoseconds(program: &Path, bytes: usize, actions: Option<&Path>) -> f64 {
    let output = command(program, &[&bytes.to_string()], actions).output();
    let output = output.expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a number")
}

/// Returns false if more is added than the goal allows.
fn print_nanoseconds(name: &str, bytes: usize, program: &Path, plan: &Path) -> bool {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (times, plan) in times.iter_mut().zip([None, Some(plan)]) {
            times.push(nanoseconds(program, bytes, plan));
        }
    }
    let [without, with] = times.map(|times| median(&times).unwrap_or_default());
    let added = with - without;
    println!("{name:>14} {without:>10.1} {with:>11.1} {added:>9.1}");
    added < 1000.0
}
