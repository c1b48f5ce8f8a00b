// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel profile`: what a recorded profile tells the kernel's estimator.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use toll_act::error::UserError;
use toll_act::{files, messages};
use toll_linux::symbols;
use toll_model::kernel::kernel_profile;
use toll_model::plan::Plan;
use toll_model::profile::Profile;
use toll_model::units::format_ns;

use crate::cmd::options::EstimateArgs;
use crate::output;

/// Write a profile for the kernel's estimator
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree kernel profile redis.json --baseline 12s -o redis.mm_profile

It contains every region that the kernel can identify, whatever the verdict: the kernel
decides by its own costs. Use it with `tollfree run --plan`.")]
pub struct Args {
    /// The recorded profile
    pub file: PathBuf,
    /// The kernel's profile to write
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub estimate: EstimateArgs,
    /// Overwrite the kernel's profile if it exists
    #[arg(long)]
    pub force: bool,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let options = args.estimate.options()?;
    if let Some(path) = &args.output {
        files::check_writable(path, args.force)?;
    }
    let (profile, plan) = args.estimate.estimate(&args.file, options)?;
    write(&args, &profile, &plan, json)
}

/// `tollfree kernel profile --json`.
#[derive(Serialize)]
struct Carried<'a> {
    rows: usize,
    regions_carried: usize,
    regions_lost: usize,
    benefit_carried_ns: f64,
    benefit_lost_ns: f64,
    profile: &'a str,
}

/// Writes a profile for the kernel, and reports what could not be carried over.
fn write(args: &Args, profile: &Profile, plan: &Plan, json: bool) -> Result<ExitCode> {
    // The kernel ages rows by CPU time. The plan has an estimate, or the wall time.
    let given = args.estimate.options()?.baseline_ns;
    let measured = profile.native_cpu_ns.map(|ns| ns as f64);
    let run_ns = given.or(measured).or(plan.baseline_ns).ok_or_else(|| {
        UserError::Usage(
            "the profile has no CPU time of a run; give it with --baseline TIME".to_owned(),
        )
    })?;
    let path = &profile.program.path;
    let zeroed = symbols::zeroed_data(Path::new(path));
    let made = kernel_profile(profile, plan, zeroed.map(|at| (path.as_str(), at)), run_ns);
    if let Some(output) = &args.output {
        files::write(output, made.text.as_bytes())?;
    }
    let all = made.carried_ns + made.lost_ns;
    let share = if all > 0.0 {
        made.carried_ns / all
    } else {
        1.0
    };
    let said = format!(
        "{} rows for {} regions; {} regions could not be carried over, with {} of {} of benefit",
        made.rows,
        made.carried,
        made.lost,
        format_ns(made.lost_ns),
        format_ns(all),
    );
    match (json, &args.output) {
        (true, _) => output::json(&Carried {
            rows: made.rows,
            regions_carried: made.carried,
            regions_lost: made.lost,
            benefit_carried_ns: made.carried_ns,
            benefit_lost_ns: made.lost_ns,
            profile: &made.text,
        })?,
        (false, Some(_)) => output::text(&format!("{said}\n"))?,
        (false, None) => {
            output::text(&made.text)?;
            messages::note(&said);
        }
    }
    if share < 0.5 && !json {
        messages::note(
            "the kernel cannot identify the regions with most of the benefit: use --source sim",
        );
    }
    Ok(ExitCode::SUCCESS)
}
