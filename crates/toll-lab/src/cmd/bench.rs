// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab bench`: measures the cost of the lab itself.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Serialize;
use toll_model::stats;

use crate::guest::{Guest, Job, Machine, Program};
use crate::kernel::{Built, Variant, build, rebuild};
use crate::output;
use crate::preset::Preset;
use crate::workspace::Workspace;

/// File that is changed to measure an incremental build.
const TOUCHED: &str = "mm/rmap.c";

const EXAMPLE: &str = "\
Example:
  toll-lab bench --runs 5

Goals: rebuild after a change to one file of mm/ under 60 s, boot under 15 s, slowdown from
counting at most 2.5, from the adversarial TLB at most 4. With --cold a kernel is built from scratch (goal: under 900 s on 2 cores).";

/// Measure the cost of the lab itself
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Rounds of runs with and without counting
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Also build a kernel from scratch, without the compiler cache
    #[arg(long)]
    cold: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Figures {
    /// Seconds to build a kernel from scratch.
    cold_build_s: Option<f64>,
    /// Seconds to rebuild it after a change to one file.
    touched_build_s: f64,
    /// Median seconds from the start of QEMU until a guest has run one command and powered off.
    boot_s: f64,
    /// Time of the scenario's section with counting divided by the time without.
    slowdown: f64,
    /// The same for the adversarial TLB.
    adversary_slowdown: f64,
    runs: u32,
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let variant = Variant::find(&workspace, "vanilla", &[])?;
    let cold_build_s = match args.cold {
        true => Some(cold(&workspace, &variant)?),
        false => None,
    };
    let built = build(&workspace, &variant)?;
    let touched_build_s = rebuild(&workspace, &variant, Path::new(TOUCHED))?;
    let preset = Preset::find("skylake")?;
    let guests = [
        (Watched::Not, "true"),
        (Watched::Not, FILLED),
        (Watched::Not, WORK),
        (Watched::Counted(&preset), FILLED),
        (Watched::Counted(&preset), WORK),
        (Watched::Judged, FILLED),
        (Watched::Judged, WORK),
    ];
    let mut seconds: [Vec<f64>; 7] = Default::default();
    for _ in 0..args.runs {
        for (times, (watched, line)) in seconds.iter_mut().zip(guests) {
            times.push(guest(&workspace, &built, watched, line)?);
        }
    }
    let [
        boot_s,
        filled,
        worked,
        filled_counted,
        worked_counted,
        filled_judged,
        worked_judged,
    ] = seconds.map(|times| stats::median(&times).unwrap_or(0.0));
    let plain = (worked - filled).max(1e-3);
    let figures = Figures {
        cold_build_s,
        touched_build_s,
        boot_s,
        slowdown: (worked_counted - filled_counted) / plain,
        adversary_slowdown: (worked_judged - filled_judged) / plain,
        runs: args.runs,
    };
    if args.json {
        return output::json(&figures);
    }
    show(&figures);
    Ok(())
}

/// Random updates, as in the scenario random-access, long enough for a stable ratio. The same
/// program with an empty section is subtracted: only sections are counted.
const WORK: &str = "random-access 256M 8M 4k";
const FILLED: &str = "random-access 256M 1 4k";

/// What watches a guest.
#[derive(Debug, Clone, Copy)]
enum Watched<'a> {
    Not,
    Counted(&'a Preset),
    Judged,
}

fn guest(workspace: &Workspace, built: &Built, watched: Watched, line: &str) -> Result<f64> {
    let mut programs = Program::installed("busybox")?;
    programs.push(Program::compiled(workspace, "random-access")?);
    let outcome = Guest {
        image: &built.image,
        machine: Machine::plain(1, 768),
        append: &[],
        programs: &programs,
        disks: &[],
        pmem: None,
        jobs: &[Job::shell("job", line)],
        limit: Duration::from_secs(600),
        preset: match watched {
            Watched::Counted(preset) => Some(preset),
            _ => None,
        },
        lines: false,
        adversary: matches!(watched, Watched::Judged),
        stores: false,
        directory: &workspace.cache.join("bench"),
    }
    .run(workspace)?;
    Ok(outcome.seconds)
}

/// Builds in temporary directories, which are removed afterwards.
fn cold(workspace: &Workspace, variant: &Variant) -> Result<f64> {
    // Unpacking the source is not part of the measurement.
    build(workspace, variant)?;
    let directory = tempfile::tempdir_in(&workspace.cache)?;
    let source = workspace.cache.join("source");
    std::os::unix::fs::symlink(source, directory.path().join("source"))?;
    let fresh = Workspace {
        cache: directory.path().to_owned(),
        ..workspace.clone()
    };
    let began = Instant::now();
    build(&fresh, variant)?;
    Ok(began.elapsed().as_secs_f64())
}

fn show(figures: &Figures) {
    let line = |what: &str, value: f64, goal: f64| {
        let met = if value <= goal { "met" } else { "NOT MET" };
        println!("{what:44} {value:8.2}   goal {goal:6.1}   {met}");
    };
    if let Some(cold) = figures.cold_build_s {
        line("a kernel from scratch, s", cold, 900.0);
    }
    line(
        "a kernel after a change to one file, s",
        figures.touched_build_s,
        60.0,
    );
    line("boot, one command, off, s", figures.boot_s, 15.0);
    line("slowdown from counting", figures.slowdown, 2.5);
    line(
        "slowdown from the adversarial TLB",
        figures.adversary_slowdown,
        4.0,
    );
}
