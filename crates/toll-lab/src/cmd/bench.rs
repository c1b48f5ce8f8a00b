// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab bench`: what the lab itself costs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Serialize;
use toll_model::stats;

use crate::guest::{Guest, Job, Machine, Program};
use crate::house::House;
use crate::kernel::{Built, Variant, build, rebuild};
use crate::output;
use crate::preset::Preset;

/// What is touched to measure how long a change takes to build.
const TOUCHED: &str = "mm/rmap.c";

const EXAMPLE: &str = "\
Example:
  toll-lab bench --runs 5

Goals: a change of one file of mm/ under 60 s, boot under 15 s, counting slows emulation by at most
2.5. With --cold a kernel is built from nothing (goal: under 900 s on 2 cores).";

/// Measure what the lab itself costs
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Rounds of runs with and without counting
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Build a kernel from nothing too, without the compiler's cache
    #[arg(long)]
    cold: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Figures {
    /// Seconds to build a kernel from nothing.
    cold_build_s: Option<f64>,
    /// Seconds to build it after a change of one file.
    touched_build_s: f64,
    /// Seconds from the start of QEMU until a guest has run one command and is off; median.
    boot_s: f64,
    /// Time of the scenario's section with counting / without.
    slowdown: f64,
    runs: u32,
}

pub fn run(args: &Args) -> Result<()> {
    let house = House::find()?;
    let variant = Variant::find(&house, "vanilla", &[])?;
    let cold_build_s = match args.cold {
        true => Some(cold(&house, &variant)?),
        false => None,
    };
    let built = build(&house, &variant)?;
    let touched_build_s = rebuild(&house, &variant, Path::new(TOUCHED))?;
    let preset = Preset::find("skylake")?;
    let guests = [
        (None, "true"),
        (None, FILLED),
        (None, WORK),
        (Some(&preset), FILLED),
        (Some(&preset), WORK),
    ];
    let mut seconds: [Vec<f64>; 5] = Default::default();
    for _ in 0..args.runs {
        for (times, (preset, line)) in seconds.iter_mut().zip(guests) {
            times.push(guest(&house, &built, preset, line)?);
        }
    }
    let [boot_s, filled, worked, filled_counted, worked_counted] =
        seconds.map(|times| stats::median(&times).unwrap_or(0.0));
    let figures = Figures {
        cold_build_s,
        touched_build_s,
        boot_s,
        slowdown: (worked_counted - filled_counted) / (worked - filled).max(1e-3),
        runs: args.runs,
    };
    if args.json {
        return output::json(&figures);
    }
    show(&figures);
    Ok(())
}

/// Random updates, as in the scenario random-access, long enough for a ratio; and the same with
/// nothing in its section, which is taken off: only there is anything counted.
const WORK: &str = "random-access 256M 8M 4k";
const FILLED: &str = "random-access 256M 1 4k";

fn guest(house: &House, built: &Built, preset: Option<&Preset>, line: &str) -> Result<f64> {
    let mut programs = Program::installed("busybox")?;
    programs.push(Program::compiled(house, "random-access")?);
    let outcome = Guest {
        image: &built.image,
        machine: Machine::plain(1, 768),
        append: &[],
        programs: &programs,
        disks: &[],
        jobs: &[Job::shell("job", line)],
        limit: Duration::from_secs(600),
        preset,
        lines: false,
        folder: &house.cache.join("bench"),
    }
    .run(house)?;
    Ok(outcome.seconds)
}

/// Builds in folders of its own, which are thrown away.
fn cold(house: &House, variant: &Variant) -> Result<f64> {
    // The source's unpacking is no part of it.
    build(house, variant)?;
    let folder = tempfile::tempdir_in(&house.cache)?;
    let source = house.cache.join("source");
    std::os::unix::fs::symlink(source, folder.path().join("source"))?;
    let fresh = House {
        cache: folder.path().to_owned(),
        ..house.clone()
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
        line("a kernel from nothing, s", cold, 900.0);
    }
    line(
        "a kernel after a change of one file, s",
        figures.touched_build_s,
        60.0,
    );
    line("boot, one command, off, s", figures.boot_s, 15.0);
    line("slow-down by counting", figures.slowdown, 2.5);
}
