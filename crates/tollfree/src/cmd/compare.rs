// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree compare`.

mod form;
mod markdown;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use toll_act::actuate::{Actuator, Policy, Settings};
use toll_act::error::UserError;
use toll_act::{signals, thp};
use toll_linux::Root;
use toll_model::pages::PageKind;
use toll_model::units::parse_duration;
use toll_prove::compare::runner::{Clock, Progress};
use toll_prove::compare::schedule::Rules;
use toll_prove::compare::subject::Subject;
use toll_prove::compare::warm::{Warmer, Warming};
use toll_prove::compare::{Comparison, Variant, compare, predicted, table};
use toll_prove::ratio;

use crate::cmd::options::{LoadArgs, percent};
use crate::output;
use form::{Form, Setting, setting};

/// Compare a program with and without a plan, or two commands, in interleaved runs
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tollfree compare [OPTIONS] --plan <PLAN> -- <CMD>...
       tollfree compare [OPTIONS] -a <CMD> -b <CMD>
       tollfree compare [OPTIONS] --env-b <NAME=VALUE> -- <CMD>...",
    after_help = "Examples:
  tollfree compare --plan xz.toml -n 10 -- xz -9 -k -c linux.tar
  tollfree compare --plan redis.toml --ready 'redis-cli ping' \\
      --workload 'redis-benchmark -q -n 200000 -t get' -- redis-server
  tollfree compare -a './old input' -b './new input' --fail-if-slower 2% --markdown
  tollfree compare --env-b GLIBC_TUNABLES=glibc.malloc.hugetlb=1 -- ./app input

The first pair is a warm-up and is not counted. The program's output is captured and
must be the same in every run; --any-output accepts output that differs between the
variants, such as that of a program that prints its run time.

With --plan, the program runs as it is, under the plan, and with everything huge. -a and
-b are run by sh, without a plan and without the preload library; a run that fails ends
the comparison. The speed-up is the time of a / the time of b: above 1, b is faster.

--fail-if-slower is for scripts: proved means that the whole 95 % interval lies beyond
the threshold. An undecided comparison does not count as slower."
)]
pub struct Args {
    /// The plan, or a list of decimal base addresses
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// The first of two commands, a line of the shell
    #[arg(short, long, value_name = "CMD")]
    pub a: Option<OsString>,
    /// The second one, compared with the first
    #[arg(short, long, value_name = "CMD")]
    pub b: Option<OsString>,
    /// Set an environment variable for the first command (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = settings())]
    pub env_a: Vec<Setting>,
    /// Set an environment variable for the second command (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = settings())]
    pub env_b: Vec<Setting>,
    /// Pairs to run (default: until the interval is smaller than the effect, or --within)
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pairs: Option<u32>,
    /// Time limit
    #[arg(long, default_value = "5m", value_name = "TIME")]
    pub within: String,
    /// Continue if the output differs between the variants
    #[arg(long)]
    pub any_output: bool,
    /// Exit with code 6 if the plan, or b, is proved to take more than PERCENT longer
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_if_slower: Option<f64>,
    /// Print a table for a pull request
    #[arg(long)]
    pub markdown: bool,
    #[command(flatten)]
    pub load: LoadArgs,
    /// Do not warm up memory before each run (done only where cold blocks are expensive)
    #[arg(long)]
    pub cold: bool,
    /// The program and its arguments
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

fn settings() -> impl TypedValueParser<Value = Setting> {
    OsStringValueParser::new().try_map(|text| setting(&text))
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let within =
        parse_duration(&args.within).map_err(|e| UserError::Usage(format!("--within: {e}")))?;
    check_options(&args, json)?;
    let mut comparison = match Form::of(&args)? {
        Form::Plan(plan) => with_plan(&args, plan, within)?,
        Form::Two(a, b) => measure(&args, Variant::two(a, b), within)?,
    };
    comparison.allow_slowdown(args.fail_if_slower);
    print(&args, json, &comparison)?;
    comparison.check(args.any_output, within)?;
    check_threshold(&comparison)?;
    Ok(ExitCode::SUCCESS)
}

fn check_options(args: &Args, json: bool) -> Result<(), UserError> {
    let message = if args.fail_if_slower.is_some() && args.pairs == Some(1) {
        "--fail-if-slower needs at least two pairs: one pair gives no interval"
    } else if args.markdown && json {
        "--markdown and --json are two forms of the same: leave out one"
    } else {
        return Ok(());
    };
    Err(UserError::Usage(message.to_owned()))
}

/// Compares the program without the plan, with it, and all huge.
fn with_plan(args: &Args, plan: &Path, within: Duration) -> Result<Comparison> {
    let policy = Policy::read(plan)?;
    // Refuse a plan for another program before anything runs.
    Actuator::new(&policy, &args.command, Settings::default())?;
    let pages = match &policy {
        Policy::Plan(plan) => plan.pages(),
        _ => vec![PageKind::Anonymous],
    };
    let planned = Variant::plan(plan).with(pages.clone());
    let mut variants = vec![Variant::none(), planned, Variant::all()];
    if thp::is_always() {
        variants.push(Variant::never());
        if thp::can_be_advised_only() {
            variants.push(Variant::plan_only(plan).with(pages));
        }
    }
    let mut comparison = measure(args, variants, within)?;
    if let Policy::Plan(plan) = &policy {
        comparison.predicted_speedup = predicted(plan, &comparison);
    }
    Ok(comparison)
}

fn measure(args: &Args, variants: Vec<Variant>, within: Duration) -> Result<Comparison> {
    let load = args.load.load()?;
    let _signals = signals::watch()?;
    let clock = Clock::start();
    let progress = Progress::new(&format!("at most {}", args.within));
    let warming = Warming::of_machine(args.cold);
    let warmer = Warmer::new(warming.on);
    let mut subject = Subject::new(&args.command, load, clock, progress.clone(), warmer)?;
    let rules = Rules {
        pairs: args.pairs,
        deadline: within,
        each: false,
    };
    let name = program(args, &variants);
    let mut comparison = compare(&mut subject, &name, &variants, &rules, None)?;
    comparison.notes.extend(subject.notes());
    comparison.warming = Some(warming);
    progress.end();
    Ok(comparison)
}

/// The name of what is compared: of the program, else the first command.
fn program(args: &Args, variants: &[Variant]) -> String {
    match args.command.first() {
        Some(program) => program.to_string_lossy().into_owned(),
        None => variants[0].meaning(),
    }
}

fn print(args: &Args, json: bool, comparison: &Comparison) -> Result<()> {
    if json {
        return output::json(comparison);
    }
    output::text(&match args.markdown {
        true => markdown::render(comparison, &markdown::machine(&Root::system())),
        false => table::render(comparison, table::More::Pairs),
    })
}

/// Returns an error if the second variant takes longer than the threshold, or if that was not
/// measured.
fn check_threshold(comparison: &Comparison) -> Result<(), UserError> {
    let Some(allowed) = comparison.allowed_slowdown_percent else {
        return Ok(());
    };
    let what = match comparison.compares_commands() {
        true => "b",
        false => "the plan",
    };
    match (comparison.too_slow, comparison.main()) {
        (Some(true), Some(interval)) => Err(UserError::Slower(format!(
            "{what} is slower than --fail-if-slower {allowed} allows: {}",
            ratio::speedup(&interval)
        ))),
        (None, _) => Err(UserError::Usage(
            "too few pairs for --fail-if-slower; raise --within".to_owned(),
        )),
        _ => Ok(()),
    }
}
