// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab run`: a scenario on one kernel, or on several side by side.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use super::crashes;
use crate::error::LabError;
use crate::output;
use crate::preset::Preset;
use crate::results::{
    MAIN, Results, bars, compared, holds, provenance, resolution, sizes_table, table, tails,
    workloads_table,
};
use crate::run::{Request, Rounds, keep, run as run_all};
use crate::scenario::{Condition, Scenario, Size};
use crate::workspace::Workspace;

const EXAMPLE: &str = "\
Examples:
  toll-lab run random-access --short
  toll-lab run inference-over-memory --variant vanilla --variant tollfree --runs 5
  toll-lab run lookup --short --variant vanilla --variant tollfree --change 3%
  toll-lab run random-access --short --variant vanilla --variant ~/queue/series --fail-if 'walks>+5%'

With several variants, their runs are interleaved, and changes are printed: the pseudo-median of the
rounds' ratios with its 95 % interval; with fewer than six rounds the interval is wide, with one
there is none.";

/// Run a scenario on one kernel, or on several in turn, and print what was counted
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Scenario: a name from `toll-lab list`, or the path of a file
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// Kernel variant, see `toll-lab kernel --help`; may be repeated, the first is the reference
    #[arg(long, value_name = "VARIANT")]
    variant: Vec<String>,
    /// Run only this policy of the scenario; may be repeated
    #[arg(long, value_name = "POLICY")]
    policy: Vec<String>,
    /// Set these symbols in every kernel (a .config fragment)
    #[arg(long, value_name = "FRAGMENT")]
    config: Vec<PathBuf>,
    #[command(flatten)]
    how: RunArgs,
    /// Reuse the runs of an earlier call with the same scenario, kernel and plugin
    #[arg(long)]
    resume: bool,
    /// Exit with status 5 if this condition holds, such as 'shootdown_irqs>+5%'; may be repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<Condition>,
    /// Print every counter, including the kernel's own (/proc/vmstat)
    #[arg(long)]
    all: bool,
    /// Also write the results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw the counters and the page-fault tail into this directory (SVG)
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// How to run scenarios.
#[derive(Debug, ClapArgs)]
pub struct RunArgs {
    /// Run the short form: seconds instead of minutes
    #[arg(long)]
    pub short: bool,
    /// Runs of each variant and policy; with --change the maximum, 30 by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Repeat until a change of PERCENT in the scenario's judged counters is detectable
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    change: Option<f64>,
    /// Run N guests at a time. Each has a host thread for each of its CPUs, or one if the scenario
    /// has `icount`; with more threads than CPUs, counts of guests with several threads vary more
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    jobs: u32,
    /// CPU preset for the TLB model
    #[arg(long, default_value = Preset::NAMES[0])]
    preset: String,
}

impl RunArgs {
    pub fn size(&self) -> Size {
        match self.short {
            true => Size::Short,
            false => Size::Full,
        }
    }

    pub fn preset(&self) -> Result<Preset> {
        Preset::find(&self.preset)
    }

    pub fn jobs(&self) -> usize {
        self.jobs as usize
    }

    pub fn rounds(&self) -> Rounds {
        match (self.change, self.runs) {
            (Some(change), most) => Rounds::Showing {
                change,
                most: most.unwrap_or(30),
            },
            (None, Some(runs)) => Rounds::Fixed(runs),
            (None, None) => Rounds::Usual,
        }
    }
}

/// Parses `3` or `3%` as 0.03.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>();
    match number {
        Ok(value) if value > 0.0 && value < 100.0 => Ok(value / 100.0),
        _ => Err("expected a percentage between 0 and 100".to_owned()),
    }
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let scenario = Scenario::find(&workspace, &args.scenario)?;
    let request = Request {
        scenario: &scenario,
        size: args.how.size(),
        variants: match args.variant.is_empty() {
            true => &scenario.variants,
            false => &args.variant,
        },
        config: &args.config,
        policies: &args.policy,
        rounds: args.how.rounds(),
        jobs: args.how.jobs(),
        preset: &args.how.preset()?,
        resumes: args.resume,
    };
    let mut results = run_all(&workspace, &request)?;
    let crashes = crashes::add(&workspace, &request, &mut results);
    if let Some(path) = &args.output {
        keep(&results, path)?;
    }
    if let Some(directory) = &args.plot {
        plot(&results, directory)?;
    }
    match args.json {
        true => output::json(&results)?,
        false => print(args, &results),
    }
    crashes?;
    judge(args, &results)
}

fn print(args: &Args, results: &Results) {
    // Default variants of a scenario have sections of their own, and are not compared.
    let show = if args.variant.len() > 1 {
        compared
    } else {
        table
    };
    print!("{}", show(results, args.all));
    if !results.sizes.is_empty() {
        print!("\n{}", sizes_table(&results.sizes));
    }
    if !results.workloads.is_empty() {
        print!("\n{}", workloads_table(&results.workloads));
    }
    println!("\n{}", provenance(results));
    if let Some(line) = resolution(results) {
        println!("{line}");
    }
}

fn plot(results: &Results, directory: &std::path::Path) -> Result<()> {
    const COUNTERS: [&str; 5] = [
        "shootdown_irqs",
        "dtlb_load_misses",
        "dtlb_store_misses",
        "itlb_misses",
        "instructions_kernel",
    ];
    let write = |name: &str, text: String| {
        let file = format!("{}-{name}.svg", results.scenario);
        crate::files::write(&directory.join(file), text.as_bytes())
    };
    write("counters", bars(results, MAIN, &COUNTERS))?;
    write("faults", tails(results, MAIN))
}

fn judge(args: &Args, results: &Results) -> Result<()> {
    let mut found = Vec::new();
    for condition in &args.fail_if {
        found.extend(holds(condition, results).map_err(LabError::Usage)?);
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(LabError::Test(found.join("\n")).into()),
    }
}
