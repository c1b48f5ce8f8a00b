// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the preload library costs a program that it has nothing to do for.
//!
//! `cargo run --release -p toll-preload --example overhead [PAIRS]`
//!
//! 1. CPU time of an allocation-heavy program with an empty plan, over the same
//!    without the library: a ratio with a 95 % interval, from interleaved runs.
//!    Goal: below 1.01.
//! 2. Nanoseconds added to one malloc + free that is not advised, by a plan with
//!    rules for other sites. Goal: below 1,000.

//!
//! Status 1 if a goal is missed for certain.

#[path = "../../tests/support/mod.rs"]
mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use support::{Actions, library};
use toll_model::stats::{median, ratio_of_medians};
use toll_model::wire::{ANY, FrameMatch, Interval, MAX_FRAMES, Module, Rule};

fn main() -> ExitCode {
    let pairs = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let pairs = pairs.unwrap_or(15);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let empty = folder.path().join("empty");
    Actions::default().write(&empty);
    let foreign = folder.path().join("foreign");
    rules_for_others(100).write(&foreign);

    println!("allocation-heavy program, CPU time with an empty plan / without the library");
    let words = compile(folder.path(), "words.cc");
    let mut met = print_ratio("std::map of strings", pairs, &words, &[], &empty);
    if let Some(python) = first_of(&["/usr/bin/python3"]) {
        let script = "d={}\nfor i in range(400000): d.setdefault(str(i%50000),[]).append((i,))\nprint(len(d))";
        let arguments = ["-c", script];
        met &= print_ratio("python3 dictionary", pairs, &python, &arguments, &empty);
    }

    println!("\nns of one malloc + free: median of {pairs} runs, each its best round");
    println!(
        "{:>14} {:>10} {:>9} {:>11} {:>9}",
        "", "without", "empty", "100 rules", "added"
    );
    for source in ["blocks.c", "objects.cc"] {
        let program = compile(folder.path(), source);
        for (name, bytes) in [
            ("64 B", 64),
            ("64 KiB", 64 << 10),
            ("1 MiB", 1 << 20),
            ("4 MiB", 4 << 20),
        ] {
            met &= print_nanoseconds(
                &format!("{name} {}", call(source)),
                bytes,
                pairs,
                &program,
                [&empty, &foreign],
            );
        }
    }
    ExitCode::from(u8::from(!met))
}

fn call(source: &str) -> &'static str {
    if source.ends_with(".cc") {
        "new"
    } else {
        "malloc"
    }
}

fn first_of(paths: &[&str]) -> Option<PathBuf> {
    paths.iter().map(PathBuf::from).find(|path| path.exists())
}

fn compile(folder: &Path, source: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/overhead")
        .join(source);
    let to = folder.join(source.replace('.', "-"));
    let compiler = if source.ends_with(".cc") { "c++" } else { "cc" };
    let status = Command::new(compiler)
        .args(["-O2", "-fno-builtin", "-o"])
        .args([&to, &from])
        .status();
    assert!(status.expect("a C compiler").success());
    to
}

/// Rules for call sites that the program does not have, in modules that it has not
/// loaded, for blocks of any length.
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

/// User and system seconds of a run.
#[allow(clippy::zombie_processes)] // wait4 waits, and tells what the run used
fn cpu_seconds(mut command: Command) -> f64 {
    let child = command
        .stdout(Stdio::null())
        .spawn()
        .expect("the program starts");
    // SAFETY: zeroes are a valid answer to overwrite; the child is ours.
    let (status, usage) = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
        libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage);
        (status, usage)
    };
    assert!(std::process::ExitStatus::from_raw(status).success());
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// False if the ratio is above its goal for certain.
fn print_ratio(
    name: &str,
    pairs: usize,
    program: &Path,
    arguments: &[&str],
    actions: &Path,
) -> bool {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for pair in 0..=pairs {
        let mut times = [0.0; 2];
        // Alternating order; the first pair only warms up.
        for arm in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
            let actions = (arm == 1).then_some(actions);
            times[arm] = cpu_seconds(command(program, arguments, actions));
        }
        if pair > 0 {
            without.push(times[0]);
            with.push(times[1]);
        }
    }
    let ratio = ratio_of_medians(&with, &without, 0.95).expect("enough runs");
    println!(
        "{name:>22}: {:.4} [{:.4}, {:.4}] of {:.2} s, {pairs} pairs",
        ratio.median,
        ratio.low,
        ratio.high,
        median(&without).unwrap_or_default(),
    );
    ratio.low < 1.01
}

fn nanoseconds(program: &Path, bytes: usize, actions: Option<&Path>) -> f64 {
    let output = command(program, &[&bytes.to_string()], actions).output();
    let output = output.expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a number")
}

/// False if more is added than the goal allows.
fn print_nanoseconds(
    name: &str,
    bytes: usize,
    runs: usize,
    program: &Path,
    actions: [&Path; 2],
) -> bool {
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..runs {
        let arms = [None, Some(actions[0]), Some(actions[1])];
        for (times, actions) in times.iter_mut().zip(arms) {
            times.push(nanoseconds(program, bytes, actions));
        }
    }
    let [without, empty, rules] = times.map(|times| median(&times).unwrap_or_default());
    println!(
        "{name:>14} {without:>10.1} {empty:>9.1} {rules:>11.1} {:>9.1}",
        rules - without
    );
    rules - without < 1000.0
}
