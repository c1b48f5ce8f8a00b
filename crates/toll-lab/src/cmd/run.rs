// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab run` and `toll-lab compare`: a scenario on one kernel, or on several side by side.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::error::LabError;
use crate::output;
use crate::preset::Preset;
use crate::results::{
    Condition, MAIN, Results, bars, compared, sizes_table, table, tails, workloads_table,
};
use crate::run::{Request, Rounds, keep, run as run_all};
use crate::scenario::{Scenario, Size};
use crate::workspace::Workspace;

const RUN_EXAMPLE: &str = "\
Examples:
  toll-lab run random-access --short
  toll-lab run inference-over-memory --variant vanilla --variant tollfree --json
  toll-lab run random-access --short --variant vanilla --variant ~/queue/series --fail-if 'walks>+5%'";

const COMPARE_EXAMPLE: &str = "\
Examples:
  toll-lab compare inference-over-memory --variant vanilla --variant tollfree --runs 5
  toll-lab compare lookup --short --change 3%

Runs of the variants are interleaved. A change is the pseudo-median of the rounds' ratios with its
95 % interval; with fewer than six rounds the interval is their range, with one there is none.";

/// Run a scenario and print what was counted
#[derive(Debug, ClapArgs)]
#[command(after_help = RUN_EXAMPLE)]
pub struct Args {
    #[command(flatten)]
    what: What,
}

/// Run a scenario on several kernels in turn, and print how they differ
#[derive(Debug, ClapArgs)]
#[command(after_help = COMPARE_EXAMPLE)]
pub struct CompareArgs {
    #[command(flatten)]
    what: What,
}

/// Number of runs of a scenario.
#[derive(Debug, ClapArgs)]
pub struct RoundsArgs {
    /// Runs of each variant and policy; with --change the maximum, 30 by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Repeat until a change of PERCENT in the scenario's judged counters is detectable
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    change: Option<f64>,
}

impl RoundsArgs {
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

#[derive(Debug, ClapArgs)]
struct What {
    /// Scenario: a name from `toll-lab list`, or the path of a file
    #[arg(value_name = "SCENARIO")]
    scenario: String,
    /// Run the short form: seconds instead of minutes
    #[arg(long)]
    short: bool,
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
    rounds: RoundsArgs,
    /// CPU preset for the TLB model
    #[arg(long, default_value = Preset::NAMES[0])]
    preset: String,
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

pub fn run(args: &Args) -> Result<()> {
    execute(&args.what, None, table)
}

pub fn compare(args: &CompareArgs) -> Result<()> {
    let both = ["vanilla".to_owned(), "tollfree".to_owned()];
    execute(&args.what, Some(&both), compared)
}

/// Runs the requested variants, else `variants`, else the scenario's own list.
fn execute(
    what: &What,
    variants: Option<&[String]>,
    show: fn(&Results, bool) -> String,
) -> Result<()> {
    let workspace = Workspace::find()?;
    let scenario = Scenario::find(&workspace, &what.scenario)?;
    let variants = variants.unwrap_or(&scenario.variants);
    let results = run_all(
        &workspace,
        &Request {
            scenario: &scenario,
            size: if what.short { Size::Short } else { Size::Full },
            variants: if what.variant.is_empty() {
                variants
            } else {
                &what.variant
            },
            config: &what.config,
            policies: &what.policy,
            rounds: what.rounds.rounds(),
            preset: &Preset::find(&what.preset)?,
            resumes: what.resume,
        },
    )?;
    if let Some(path) = &what.output {
        keep(&results, path)?;
    }
    if let Some(directory) = &what.plot {
        plot(&results, directory)?;
    }
    if what.json {
        output::json(&results)?;
    } else {
        print!("{}", show(&results, what.all));
        if !results.sizes.is_empty() {
            print!("\n{}", sizes_table(&results.sizes));
        }
        if !results.workloads.is_empty() {
            print!("\n{}", workloads_table(&results.workloads));
        }
        println!("\n{}", provenance(&results));
        if let Some(line) = resolution(&results) {
            println!("{line}");
        }
    }
    judge(what, &results)
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

/// Describes how the results were produced; printed with every figure from the lab.
pub fn provenance(results: &Results) -> String {
    let environment = &results.environment;
    let machine = &environment.machine;
    let kernels: Vec<String> = environment
        .kernels
        .iter()
        .map(|kernel| {
            let lab = kernel
                .patches
                .iter()
                .filter(|patch| patch.starts_with('9'))
                .count();
            format!(
                "{} {} ({lab} lab-only seams)",
                kernel.variant, kernel.release
            )
        })
        .collect();
    let clock = match machine.icount {
        true => "one host thread, instruction-count clock",
        false => "one host thread per CPU",
    };
    let pcid = if machine.pcid {
        "PCIDs in software"
    } else {
        "no PCIDs"
    };
    format!(
        "{}, {} form, {}: {}; {} CPUs, {} MiB, {clock}, {pcid}; QEMU {}; preset {}; first touch: {}.",
        results.scenario,
        results.form.name(),
        environment.date,
        kernels.join(", "),
        machine.cpus,
        machine.memory_mib + machine.slow_mib,
        environment.qemu,
        results.preset,
        environment.first_touch
    )
}

/// Describes the resolution of the counts: the rounds that a change of 3 % needs, from the spread
/// of the first variant's runs.
pub fn resolution(results: &Results) -> Option<String> {
    const CHANGE: f64 = 0.03;
    if results.environment.machine.icount {
        let say = "Counts of the same run repeat within 1 %: one run is enough.";
        return Some(say.to_owned());
    }
    let judges = results.judged_by.join(", ");
    let (needed, judge) = results.rounds_for(CHANGE)?;
    let made = results.results.first()?.samples as u32;
    Some(match needed <= made {
        true => format!("Judged by {judges}: {made} rounds detect a change of 3 %."),
        false => format!(
            "Judged by {judges}: a change of 3 % needs {needed} rounds ({judge}); {made} were run."
        ),
    })
}

fn judge(what: &What, results: &Results) -> Result<()> {
    let mut found = Vec::new();
    for condition in &what.fail_if {
        found.extend(condition.holds(results).map_err(LabError::Usage)?);
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(LabError::Test(found.join("\n")).into()),
    }
}
