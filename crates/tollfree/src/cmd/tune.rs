// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree tune`.

mod live;
mod page;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::permanent::smaller_pages;
use toll_act::search::find_program;
use toll_act::{messages, signals};
use toll_linux::Root;
use toll_linux::sys::Thp;
use toll_model::units::{format_size, parse_duration, parse_size};
use toll_observe::machine;
use toll_prove::compare::runner::{Clock, Progress};
use toll_prove::compare::subject::Subject;
use toll_prove::compare::warm::{Warmer, Warming};
use toll_prove::tune::budget::{Course, announcement};
use toll_prove::tune::directory::Directory;
use toll_prove::tune::findings::Results;
use toll_prove::tune::machine::MachineExperiment;
use toll_prove::tune::{decide, resume, text};

use crate::cmd::options::{LoadArgs, percent};
use crate::output;

/// Find out whether and where huge pages pay for a program, and what to do about it
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tollfree tune [OPTIONS] -- PROGRAM [ARGUMENTS]...\n       tollfree tune [OPTIONS] --pid <PID>",
    after_help = "Examples:
  tollfree tune -- xz -9 -k -c linux.tar
  tollfree tune --within 5m --ready 'redis-cli ping' \\
      --workload 'redis-benchmark -q -n 200000 -r 1000000 -t get' \\
      --metric '([0-9.]+) requests per second' -- redis-server --port 6379
  tollfree tune --pid 4242 --count-lines /var/log/nginx/access.log

The program runs many times, also under a simulator: it must not modify its
input. Its output is captured and must be the same in every run (--any-output
accepts output that differs between the variants). The verdict comes from interleaved
runs, with a 95 % interval; results are written to a new directory.

An undecided answer prints the command that continues from the stored runs:
--resume DIR, with the same options and command line.

A running process (--pid) is not restarted: its memory alternates between 4 KiB pages and
huge pages, and its work is measured in between. At the end, and on Ctrl-C, the page sizes
from before are restored."
)]
pub struct Args {
    /// Total time limit
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = parse_duration)]
    pub within: Duration,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub live: live::LiveArgs,
    /// Directory for the results (default: ./tollfree-PROGRAM-TIME)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Continue the comparison that an earlier tune left undecided in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "force", "pid"])]
    pub resume: Option<PathBuf>,
    /// Overwrite the output directory
    #[arg(long)]
    pub force: bool,
    /// Continue if the output differs between the variants
    #[arg(long)]
    pub any_output: bool,
    /// Reject a variant that needs more additional resident memory than this, in percent of the
    /// program's as it is
    #[arg(
        long,
        default_value = "25",
        value_name = "PERCENT",
        value_parser = percent,
        conflicts_with = "pid"
    )]
    pub allow_growth: f64,
    /// Also try pages of this size, 16K to 1M, for all anonymous memory: a setting of the machine,
    /// which other programs see while such a run lasts (root)
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "pid")]
    pub mthp: Option<u64>,
    /// Do not warm up memory before each run (done only where cold blocks are expensive)
    #[arg(long)]
    pub cold: bool,
    /// Show the command line and environment in report.html
    #[arg(long)]
    pub show_command: bool,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "pid")]
    pub command: Vec<OsString>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let _signals = signals::watch()?;
    let clock = Clock::start();
    let load = args.load.load()?;
    if let Some(pid) = args.live.pid {
        return live::run(&args, pid, load.unwrap_or_default(), clock, json);
    }
    find_program(&args.command[0])?;
    if let Some(size) = args.mthp {
        check_smaller_pages(size)?;
    }
    let program = args.command[0].to_string_lossy().into_owned();
    let fingerprint = fingerprint(&args);
    let stored = match &args.resume {
        Some(directory) => Some(resume::read(directory, &fingerprint)?),
        None => None,
    };
    let directory = match &args.resume {
        Some(directory) => Directory::again(directory),
        None => Directory::create(args.output.as_deref(), &program, args.force)?,
    };
    messages::note(announcement(args.within, course(&stored)));
    let stored_warming = stored.as_ref().and_then(|it| it.findings.warming.clone());
    let warming = stored_warming.unwrap_or_else(|| Warming::of_machine(args.cold));
    let mut experiment = MachineExperiment {
        subject: Subject::new(
            &args.command,
            load.clone(),
            clock,
            Progress::new("begins"),
            Warmer::new(warming.on),
        )?,
        command: args.command.clone(),
        directory,
        load,
        any_output: args.any_output,
        allowed_growth: args.allow_growth,
        mthp: args.mthp,
        warming,
        cold: args.cold,
        show_command: args.show_command,
        subject_fingerprint: fingerprint,
        page: page::render,
        notes: Vec::new(),
    };
    let mut results = match stored {
        Some(stored) => decide::resume(&mut experiment, stored, args.within)?,
        None => decide::tune(&mut experiment, &program, args.within)?,
    };
    experiment.publish(&mut results)?;
    experiment.finish();
    say(&results, json)
}

/// Whether this kernel has pages of this size, and this process may change its setting.
fn check_smaller_pages(size: u64) -> Result<(), UserError> {
    let change = smaller_pages(size).and_then(|it| it.variant?.machine);
    let Some(setting) = change else {
        return Err(UserError::Usage(format!(
            "--mthp {}: not one of 16K, 32K, 64K, 128K, 256K, 512K, 1M",
            format_size(size)
        )));
    };
    let here = Thp::read(&Root::system()).map_or_else(Vec::new, |thp| thp.sizes);
    if !here.iter().any(|(known, _)| *known == size) {
        return Err(UserError::Missing(format!(
            "--mthp {}: this kernel has no pages of this size (Linux 6.8 with transparent huge pages)",
            format_size(size)
        )));
    }
    setting.check()
}

/// Identifies what `--resume` compares: the command line, and the options that affect a run.
fn fingerprint(args: &Args) -> String {
    let window = args.load.for_.map(|window| format!("{window:?}"));
    let options = [
        args.load.workload.as_deref(),
        args.load.ready.as_deref(),
        args.load.metric.as_deref(),
        window.as_deref(),
        args.cold.then_some("cold"),
    ];
    resume::fingerprint(&args.command, &options)
}

/// The steps that are planned, as far as they are known before anything runs.
fn course(stored: &Option<Results>) -> Course {
    match stored {
        Some(_) => Course::Resumed,
        None => Course::Whole {
            costs_known: machine::costs_known(),
        },
    }
}

fn say(results: &Results, json: bool) -> Result<ExitCode> {
    if json {
        output::json(&results.findings)?;
    } else {
        output::text(&text::render(&results.findings))?;
    }
    match results.findings.complete {
        true => Ok(ExitCode::SUCCESS),
        false => Err(UserError::Interrupted.into()),
    }
}
