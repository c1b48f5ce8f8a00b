// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree tune`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use toll_model::largepages;
use toll_model::units::parse_duration;

use crate::compare::input::Input;
use crate::compare::metric::Metric;
use crate::compare::program::Program;
use crate::compare::runner::{Clock, Progress};
use crate::compare::server::{Load, Server};
use crate::compare::warm::{Warmer, Warming};
use crate::error::UserError;
use crate::target::find_program;
use crate::tune::bench::{Bench, Subject, costs_known};
use crate::tune::budget::{Course, announcement};
use crate::tune::findings::Results;
use crate::tune::folder::Folder;
use crate::tune::live::{self, Live};
use crate::tune::{decide, page, resume, text};
use crate::{output, signals};

/// Say whether huge pages pay for a program, where, and what to do about it
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tollfree tune [OPTIONS] -- PROGRAM [ARGUMENTS]...\n       tollfree tune [OPTIONS] --pid <PID>",
    after_help = "Examples:
  tollfree tune -- xz -9 -k -c linux.tar
  tollfree tune --within 5m --ready 'redis-cli ping' \\
      --workload 'redis-benchmark -q -n 200000 -r 1000000 -t get' \\
      --metric '([0-9.]+) requests per second' -- redis-server --port 6379

The program runs many times, also under a simulator: it must not change what it
works on. Its output is captured and must be the same in every run (--any-output
accepts one that differs between the arms). The verdict comes from runs side by
side, with a 95 % interval; results go to a new folder.

An undecided answer names the command that goes on from the runs that are there:
--resume DIR, with the same options and command line.

--metric: the last match counts; more is better, unless the group is named
(?<time>...) or a unit of time follows the number."
)]
pub struct Args {
    /// Time limit for everything together
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = parse_duration)]
    pub within: Duration,
    /// The program is a server: observe it for this long once it is ready
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub for_: Option<Duration>,
    /// The load to drive against a server (a shell command); its time is what is compared
    #[arg(long, value_name = "CMD")]
    pub workload: Option<String>,
    /// A command that succeeds once the server is up
    #[arg(long, value_name = "CMD")]
    pub ready: Option<String>,
    /// Take the number that this expression captures from the workload's output instead of its time
    #[arg(long, value_name = "REGEX", requires = "workload")]
    pub metric: Option<String>,
    /// A process that runs already
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,
    /// Where to write the results (default: ./tollfree-PROGRAM-TIME)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Go on with the comparison that an earlier tune left undecided in this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "force", "pid"])]
    pub resume: Option<PathBuf>,
    /// Overwrite the output folder
    #[arg(long)]
    pub force: bool,
    /// Go on if the output differs between the arms
    #[arg(long)]
    pub any_output: bool,
    /// Call nothing a gain that takes more resident memory than this, in percent of the program's as it is
    #[arg(
        long,
        default_value = "25",
        value_name = "PERCENT",
        value_parser = super::compare::percent,
        conflicts_with = "pid"
    )]
    pub allow_growth: f64,
    /// Do not warm memory up before each run (done only where cold blocks are dear)
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
    let load = load(&args)?;
    if let Some(pid) = args.pid {
        return tune_live(&args, pid, load.unwrap_or_default(), clock, json);
    }
    find_program(&args.command[0])?;
    let program = args.command[0].to_string_lossy().into_owned();
    let fingerprint = fingerprint(&args);
    let stored = match &args.resume {
        Some(folder) => Some(resume::read(folder, &fingerprint)?),
        None => None,
    };
    let folder = match &args.resume {
        Some(folder) => Folder::again(folder),
        None => Folder::create(args.output.as_deref(), &program, args.force)?,
    };
    output::note(announcement(args.within, course(&stored)));
    let stored_warming = stored.as_ref().and_then(|it| it.findings.warming.clone());
    let warming = stored_warming.unwrap_or_else(|| Warming::of_machine(args.cold));
    let mut bench = Bench {
        subject: subject(&args.command, load.clone(), clock, &warming)?,
        command: args.command.clone(),
        folder,
        load,
        any_output: args.any_output,
        allowed_growth: args.allow_growth,
        warming,
        cold: args.cold,
        show_command: args.show_command,
        subject_fingerprint: fingerprint,
        notes: Vec::new(),
    };
    let mut results = match stored {
        Some(stored) => decide::resume(&mut bench, stored, args.within)?,
        None => decide::tune(&mut bench, &program, args.within)?,
    };
    bench.publish(&mut results)?;
    bench.finish();
    say(&results, json)
}

/// What `--resume` compares: the command line, and the options that make a run what it is.
fn fingerprint(args: &Args) -> String {
    let window = args.for_.map(|window| format!("{window:?}"));
    let options = [
        args.workload.as_deref(),
        args.ready.as_deref(),
        args.metric.as_deref(),
        window.as_deref(),
        args.cold.then_some("cold"),
    ];
    resume::fingerprint(&args.command, &options)
}

/// A program that ends by itself, or a server, with what shows its progress.
fn subject(
    command: &[OsString],
    load: Option<Load>,
    clock: Clock,
    warming: &Warming,
) -> Result<Subject> {
    let progress = progress();
    let warmer = Warmer::new(warming.on);
    Ok(match load {
        Some(load) => {
            let server = Server::new(command, load, clock, progress, warmer)?;
            Subject::Server(Box::new(server))
        }
        None => {
            let program = Program::new(command, Input::read()?, clock, progress, warmer)?;
            Subject::Program(Box::new(program))
        }
    })
}

fn progress() -> Progress {
    Progress {
        bar: output::progress("begins"),
        step: String::new(),
    }
}

/// What will be done, as far as that is known before anything runs.
fn course(stored: &Option<Results>) -> Course {
    match stored {
        Some(_) => Course::Resumed,
        None => Course::Whole {
            costs_known: costs_known(),
        },
    }
}

/// How a server is loaded; `None` for a program that ends by itself.
fn load(args: &Args) -> Result<Option<Load>> {
    let metric = args.metric.as_deref().map(Metric::new).transpose()?;
    let server = args.workload.is_some() || args.for_.is_some();
    if args.ready.is_some() && !server {
        let message = "--ready is for servers: add --workload CMD or --for TIME";
        return Err(UserError::Usage(message.to_owned()).into());
    }
    Ok(server.then(|| Load {
        workload: args.workload.clone(),
        ready: args.ready.clone(),
        window: args.for_,
        metric,
    }))
}

fn tune_live(args: &Args, pid: u32, load: Load, clock: Clock, json: bool) -> Result<ExitCode> {
    let mut live = Live::new(pid, load, args.within, clock, progress());
    let mut results = live.tune()?;
    live.progress.bar.finish_and_clear();
    let folder = Folder::create(
        args.output.as_deref(),
        &results.findings.program,
        args.force,
    )?;
    results.findings.folder = Some(folder.path().to_owned());
    results.findings.report = Some(folder.file("report.html"));
    if !live.regions.is_empty() {
        folder.write(live::REGIONS, largepages::format(&live.regions).as_bytes())?;
        results.findings.notes.push(format!(
            "what was made huge stays huge; this splits it: tollfree apply --undo --plan {} --pid {pid}",
            folder.file(live::REGIONS).display()
        ));
    }
    folder.write("report.html", page::render(&results, None).as_bytes())?;
    folder.write("tune.json", &serde_json::to_vec_pretty(&results.findings)?)?;
    say(&results, json)
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
