// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree compare`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use toll_act::actuate::{Actuator, Policy, Settings};
use toll_act::error::UserError;
use toll_act::{signals, thp};
use toll_model::units::parse_duration;
use toll_prove::compare::runner::{Clock, Progress};
use toll_prove::compare::schedule::Rules;
use toll_prove::compare::subject::Subject;
use toll_prove::compare::warm::{Warmer, Warming};
use toll_prove::compare::{Comparison, Variant, compare, predicted, table};
use toll_prove::ratio;

use crate::cmd::options::{LoadArgs, percent};
use crate::output;

/// Run a program without the plan, with it, and all huge, interleaved, and compare
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tollfree compare --plan xz.toml -n 10 -- xz -9 -k -c linux.tar
  tollfree compare --plan redis.toml --ready 'redis-cli ping' \\
      --workload 'redis-benchmark -q -n 200000 -t get' -- redis-server

The first pair is a warm-up and is not counted. The program's output is captured and
must be the same in every run; --any-output accepts output that differs between the
variants, such as that of a program that prints its run time.

--fail-if-slower is for scripts: proved means that the whole 95 % interval lies beyond
the threshold. An undecided comparison does not count as slower.")]
pub struct Args {
    /// The plan, or a list of decimal base addresses
    #[arg(long, value_name = "PLAN")]
    pub plan: PathBuf,
    /// Pairs to run (default: until the interval is smaller than the effect, or --within)
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: Option<u32>,
    /// Time limit
    #[arg(long, default_value = "5m", value_name = "TIME")]
    pub within: String,
    /// Continue if the output differs between the variants
    #[arg(long)]
    pub any_output: bool,
    /// Exit with code 6 if the plan is proved to take more than PERCENT longer
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_if_slower: Option<f64>,
    #[command(flatten)]
    pub load: LoadArgs,
    /// Do not warm up memory before each run (done only where cold blocks are expensive)
    #[arg(long)]
    pub cold: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let within =
        parse_duration(&args.within).map_err(|e| UserError::Usage(format!("--within: {e}")))?;
    if args.fail_if_slower.is_some() && args.pairs == Some(1) {
        let message = "--fail-if-slower needs at least two pairs: one pair gives no interval";
        return Err(UserError::Usage(message.to_owned()).into());
    }
    let load = args.load.load()?;
    let policy = Policy::read(&args.plan)?;
    // Refuse a plan for another program before anything runs.
    Actuator::new(&policy, &args.command, Settings::default())?;
    let _signals = signals::watch()?;
    let clock = Clock::start();
    let progress = Progress::new(&format!("at most {}", args.within));
    let warming = Warming::of_machine(args.cold);
    let warmer = Warmer::new(warming.on);
    let mut subject = Subject::new(&args.command, load, clock, progress.clone(), warmer)?;
    let mut variants = vec![Variant::none(), Variant::plan(&args.plan), Variant::all()];
    if thp::is_always() {
        variants.push(Variant::never());
        if thp::can_be_advised_only() {
            variants.push(Variant::plan_only(&args.plan));
        }
    }
    let rules = Rules {
        pairs: args.pairs,
        deadline: within,
        each: false,
    };
    let name = args.command[0].to_string_lossy();
    let mut comparison = compare(&mut subject, &name, &variants, &rules, None)?;
    comparison.notes.extend(subject.notes());
    comparison.warming = Some(warming);
    if let Policy::Plan(plan) = &policy {
        comparison.predicted_speedup = predicted(plan, &comparison);
    }
    comparison.allow_slowdown(args.fail_if_slower);
    progress.end();
    if json {
        output::json(&comparison)?;
    } else {
        output::text(&table::render(&comparison, table::More::Pairs))?;
    }
    comparison.check(args.any_output, within)?;
    check_threshold(&comparison)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns an error if the plan takes longer than the threshold, or if that was not measured.
fn check_threshold(comparison: &Comparison) -> Result<(), UserError> {
    let Some(allowed) = comparison.allowed_slowdown_percent else {
        return Ok(());
    };
    match (comparison.too_slow, comparison.main()) {
        (Some(true), Some(interval)) => Err(UserError::Slower(format!(
            "the plan is slower than --fail-if-slower {allowed} allows: {}",
            ratio::speedup(&interval)
        ))),
        (None, _) => Err(UserError::Usage(
            "too few pairs for --fail-if-slower; raise --within".to_owned(),
        )),
        _ => Ok(()),
    }
}
