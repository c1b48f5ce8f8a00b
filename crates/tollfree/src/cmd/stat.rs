// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree stat`.

mod report;
mod sink;
mod text;
mod watch;

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use toll_act::error::UserError;
use toll_act::target::{self, Launch, Outcome};
use toll_act::{messages, signals};
use toll_linux::Root;
use toll_linux::counters::{Counters, FinalUse, Refusal};
use toll_linux::proc::Place;
use toll_model::units::parse_duration;

use report::Subject;
use sink::Sink;
use watch::Watch;

/// Shortest interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// Count what virtual memory costs a program, a process, a cgroup or the machine
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("subject").required(true).args(["pid", "all", "cgroup", "command"]),
    after_help = "\
Examples:
  tollfree stat -- ./app input
  tollfree stat -p 4711 --for 10s
  tollfree stat --cgroup system.slice/nginx.service -I 5s
  tollfree stat -a -I 1 --json > machine.jsonl

Prints TLB misses and page walks (with a PMU), page faults, TLB shootdowns, direct
reclaim and compaction, huge pages and page tables, each with an estimate of the CPU
time lost to it. What cannot be measured here is listed with the reason and the fix.
docs/guide/stat.md has every formula.

The program's output and exit status pass through; the table goes to stderr. -p ends
with the process, -a and --cgroup at Ctrl-C, all of them after --for."
)]
pub struct Args {
    /// Watch this process and its children
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Option<u32>,
    /// Watch the whole machine
    #[arg(short, long)]
    pub all: bool,
    /// Watch this cgroup: its directory, or its name
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Print the changes of each interval instead of one table at the end
    #[arg(short = 'I', long, value_name = "TIME", value_parser = parse_duration)]
    pub interval: Option<Duration>,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, conflicts_with = "command")]
    pub for_: Option<Duration>,
    /// Write to this file or open descriptor (/dev/fd/3) instead of stderr or stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Use this directory as / (for tests)
    #[arg(long, hide = true, value_name = "PATH")]
    pub root: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true)]
    pub command: Vec<OsString>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    for time in [args.interval, args.for_].into_iter().flatten() {
        if time < SHORTEST {
            let message = "--interval and --for: at least 10 ms";
            return Err(UserError::Usage(message.to_owned()).into());
        }
    }
    let root = args.root.as_ref().map_or_else(Root::system, Root::at);
    let is_program = !args.command.is_empty();
    let sink = Sink::open(args.output.as_deref(), is_program, args.interval.is_some())?;
    let watch = |subject, counters| {
        let costs = super::options::event_costs(&root);
        Watch::new(subject, counters, costs, args.interval, sink, json)
    };
    if is_program {
        let subject = Subject::command(&args.command);
        return run_program(&args.command, watch(subject, Counters::of_children(&root)));
    }
    let (subject, counters) = match (args.pid, &args.cgroup) {
        (Some(pid), _) => (Subject::Pid(pid), Counters::of_process(&root, pid)),
        (None, Some(name)) => (Subject::cgroup(name), Counters::of_cgroup(&root, name)),
        (None, None) => (Subject::Machine, Ok(Counters::of_machine(&root))),
    };
    let counters = counters.map_err(refused)?;
    let guard = signals::watch().context("no pipe for signals")?;
    let end = args.pid.filter(|_| args.root.is_none()).and_then(pidfd);
    let place = args.pid.map(|pid| Place::of(&root, pid));
    let watch = watch(subject, counters).at(place.unwrap_or_default());
    watch.until_over(args.for_, end)?;
    drop(guard);
    Ok(ExitCode::SUCCESS)
}

fn refused(refusal: Refusal) -> UserError {
    UserError::UnfitFile(refusal.to_string())
}

/// A descriptor that becomes readable when a process ends. Without it, the end is seen at a look.
fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Runs a program to its end, and reports.
fn run_program(command: &[OsString], mut watch: Watch) -> Result<ExitCode> {
    watch.begin();
    let mut child = Launch::new(command).spawn()?;
    watch.attach(child.pid());
    let outcome = child.wait(|| watch.tick())?;
    // The program's status matters more than a table that cannot be written.
    if let Err(error) = watch.finish(Some(final_use(&outcome))) {
        messages::note(format_args!("{error:#}"));
    }
    Ok(target::end_like(outcome.status))
}

fn final_use(outcome: &Outcome) -> FinalUse {
    FinalUse {
        minor_faults: outcome.minor_faults,
        major_faults: outcome.major_faults,
        user: outcome.user,
        system: outcome.sys,
    }
}
