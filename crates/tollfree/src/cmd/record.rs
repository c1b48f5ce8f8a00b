// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree record`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use toll_act::actuate::{Actuator, Policy, Settings};
use toll_act::error::UserError;
use toll_act::{files, messages, signals, target};
use toll_linux::Root;
use toll_linux::proc::Placed;
use toll_model::profile::{Profile, Source};
use toll_model::units::{parse_duration, parse_range};
use toll_observe::record::{self, RecordOptions, SourceChoice, record};

use crate::output;

/// How long a running process is recorded if --for does not say.
const WINDOW: Duration = Duration::from_secs(10);

/// Which source to record with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SourceName {
    /// The simulator if it is fast enough, else perf if this CPU reports data addresses, else
    /// accessed bits
    Auto,
    /// Samples of memory accesses by the CPU (perf mem)
    Perf,
    /// The simulator (qemu-user with the TLB plugin)
    Sim,
    /// Accessed bits of the page tables
    #[value(alias = "refs")]
    Accessed,
}

impl From<SourceName> for SourceChoice {
    fn from(name: SourceName) -> SourceChoice {
        match name {
            SourceName::Auto => SourceChoice::Auto,
            SourceName::Perf => SourceChoice::Perf,
            SourceName::Sim => SourceChoice::Sim,
            SourceName::Accessed => SourceChoice::Accessed,
        }
    }
}

/// Record a profile of a program
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The profile to write
    #[arg(short, long, value_name = "FILE", default_value = "profile.json")]
    pub output: PathBuf,
    /// Where the counts come from
    #[arg(long, value_enum, default_value = "auto")]
    pub source: SourceName,
    /// Count only this address range, START..END (hexadecimal or decimal)
    #[arg(long, value_name = "RANGE", value_parser = range)]
    pub only: Option<Range<u64>>,
    /// Run the program under this plan while recording
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// Record code stacks too, for `report --folded` (with --source perf)
    #[arg(long)]
    pub stacks: bool,
    /// TLB preset for the simulator (default: this CPU)
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Share of the run that the simulator instruments, 0..1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub sample: Option<f64>,
    /// Record a process that runs already, by accessed bits; it runs on unchanged
    #[arg(short, long, value_name = "PID", conflicts_with_all = ["command", "plan", "preset", "sample", "stacks"])]
    pub pid: Option<u32>,
    /// Record for this long at most (with --pid: 10s); a program that tollfree started is then ended
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub for_: Option<Duration>,
    /// Overwrite the profile if it exists
    #[arg(long)]
    pub force: bool,
    /// Write a summary of the recording to this file, as JSON
    ///
    /// A file or an open descriptor: /dev/fd/3. Without it, --json writes to stderr, mixed with the
    /// program's own output.
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "pid")]
    pub command: Vec<std::ffi::OsString>,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    parse_range(text).map_err(|error| error.to_string())
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match share > 0.0 && share <= 1.0 {
        true => Ok(share),
        false => Err("must be above 0 and at most 1".to_owned()),
    }
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    files::check_writable(&args.output, args.force)?;
    if let Some(file) = &args.summary {
        files::check_writable(file, true)?;
    }
    if args.stacks && args.source != SourceName::Perf {
        let message = "--stacks needs --source perf: the other sources do not know the code";
        return Err(UserError::Usage(message.to_owned()).into());
    }
    if let Some(pid) = args.pid {
        return record_pid(pid, &args, json);
    }
    let actuator = args.plan.as_deref().map(|plan| actuator(plan, &args, json));
    let options = RecordOptions {
        only: args.only,
        actuator: actuator.transpose()?,
        command: args.command,
        stacks: args.stacks,
        preset: args.preset,
        sample: args.sample,
        limit: args.for_,
        ..RecordOptions::default()
    };
    // From here on, an interrupt stops the target and keeps the recorded data.
    let _guard = signals::watch().context("no pipe for signals")?;
    let recorded = record(args.source.into(), &options)?;
    drop(options);
    let (output, summary) = (&args.output, args.summary.as_deref());
    finish(&recorded.profile, None, output, summary, json)?;
    Ok(target::end_like(recorded.status))
}

fn record_pid(pid: u32, args: &Args, json: bool) -> Result<ExitCode> {
    if !matches!(args.source, SourceName::Auto | SourceName::Accessed) {
        let message = "--pid records accessed bits; the other sources start the program";
        return Err(UserError::Usage(message.to_owned()).into());
    }
    let _guard = signals::watch().context("no pipe for signals")?;
    let window = args.for_.unwrap_or(WINDOW);
    let process = Placed::of(&Root::system(), pid);
    let profile = record::record_pid(pid, window, args.only.clone())?;
    let (output, summary) = (&args.output, args.summary.as_deref());
    finish(&profile, Some(&process), output, summary, json)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the profile and reports it. A recording that was interrupted is an error after that.
fn finish(
    profile: &Profile,
    process: Option<&Placed>,
    output: &Path,
    summary: Option<&Path>,
    json: bool,
) -> Result<()> {
    files::write(output, profile.to_json()?.as_bytes())?;
    say(output, profile, process, json, summary)?;
    match signals::interrupted() {
        Some(_) => Err(UserError::Interrupted.into()),
        None => Ok(()),
    }
}

fn actuator(plan: &Path, args: &Args, quiet: bool) -> Result<Actuator> {
    let policy = Policy::read(plan)?;
    let actuator = Actuator::new(&policy, &args.command, Settings::default())?;
    if !quiet {
        actuator.say_notes();
    }
    Ok(actuator)
}

/// The output of `record --json`.
#[derive(Serialize)]
struct Said<'a> {
    output: &'a Path,
    #[serde(flatten)]
    process: Option<&'a Placed>,
    source: Source,
    complete: bool,
    misses: f64,
    observations: u64,
    footprint: u64,
    warnings: &'a [String],
}

/// Reports the result: as JSON in the summary file if one is named, else on stderr. stdout belongs
/// to the target.
fn say(
    path: &Path,
    profile: &Profile,
    process: Option<&Placed>,
    json: bool,
    summary: Option<&Path>,
) -> Result<()> {
    if json || summary.is_some() {
        let said = Said {
            output: path,
            process,
            source: profile.source,
            complete: profile.complete,
            misses: profile.misses(),
            observations: profile.observations,
            footprint: profile.footprint,
            warnings: &profile.warnings,
        };
        output::json_for(summary, &said)?;
    }
    if json {
        return Ok(());
    }
    for warning in &profile.warnings {
        messages::note(format_args!("warning: {warning}"));
    }
    let part = match profile.complete {
        true => "",
        false => ", of a part of the run",
    };
    let of = process.map(|it| format!(" of process {it}"));
    let of = of.unwrap_or_default();
    messages::note(format_args!("wrote {}{of}{part}", path.display()));
    Ok(())
}
