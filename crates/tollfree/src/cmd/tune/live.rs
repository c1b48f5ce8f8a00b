// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree tune --pid`.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_model::units::parse_duration;
use toll_prove::compare::load::Load;
use toll_prove::compare::runner::{Clock, Progress};
use toll_prove::tune::directory::Directory;
use toll_prove::tune::findings::Results;
use toll_prove::tune::live::{Live, Progressing, Request};

use super::{Args, page, say};

/// A running process, and how its work is measured.
#[derive(Debug, Clone, clap::Args)]
pub struct LiveArgs {
    /// A running process: alternate its page sizes
    #[arg(short, long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,
    /// --pid: a command that prints a number that grows with the work (requests served); CPU time
    /// per unit is compared
    #[arg(long, value_name = "CMD", requires = "pid", conflicts_with = "command")]
    pub metric_command: Option<String>,
    /// --metric-command prints a level that describes the last seconds, not a growing number
    ///
    /// Larger is better, unless a unit of time follows the number.
    #[arg(long, requires = "metric_command")]
    pub gauge: bool,
    /// --pid: a file that gets a line for each unit of work (an access log); CPU time per line is
    /// compared
    #[arg(
        long,
        value_name = "FILE",
        requires = "pid",
        conflicts_with_all = ["metric_command", "command"]
    )]
    pub count_lines: Option<PathBuf>,
    /// --pid: length of a window of measurement (default: by the size of the memory, at least 2s)
    #[arg(
        long,
        value_name = "TIME",
        requires = "pid",
        conflicts_with = "command",
        value_parser = parse_duration
    )]
    pub window: Option<Duration>,
    /// --pid: leave the memory huge if that is a proved gain
    #[arg(long, requires = "pid", conflicts_with = "command")]
    pub keep: bool,
}

impl LiveArgs {
    /// What shows the progress, if the user names it.
    fn progress(&self) -> Result<Option<Progressing>, UserError> {
        if let Some(path) = &self.count_lines {
            let unreadable =
                |error| UserError::Usage(format!("--count-lines {}: {error}", path.display()));
            File::open(path).map_err(unreadable)?;
            return Ok(Some(Progressing::Lines(path.clone())));
        }
        let command = self.metric_command.clone();
        Ok(command.map(match self.gauge {
            true => Progressing::Gauge,
            false => Progressing::Counter,
        }))
    }
}

pub(super) fn run(args: &Args, pid: u32, load: Load, clock: Clock, json: bool) -> Result<ExitCode> {
    if args.live.window.is_some_and(|window| window.is_zero()) {
        return Err(UserError::Usage("--window: must be above 0".to_owned()).into());
    }
    let request = Request {
        pid,
        load,
        progress: args.live.progress()?,
        window: args.live.window,
        keep: args.live.keep,
        output: args.output.clone(),
        force: args.force,
    };
    let mut live = Live::new(request, args.within, clock, Progress::new("begins"));
    let mut results = live.tune()?;
    live.progress.end();
    let directory = match live.directory.take() {
        Some(directory) => directory,
        None => Directory::create(
            args.output.as_deref(),
            &results.findings.program,
            args.force,
        )?,
    };
    publish(&directory, &mut results)?;
    say(&results, json)
}

fn publish(directory: &Directory, results: &mut Results) -> Result<()> {
    results.findings.directory = Some(directory.path().to_owned());
    results.findings.report = Some(directory.file("report.html"));
    directory.write("report.html", page::render(results, None).as_bytes())?;
    directory.write("tune.json", &serde_json::to_vec_pretty(&results.findings)?)?;
    Ok(())
}
