// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree apply`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use toll_act::actuate::Policy;
use toll_act::apply::{self, Done, Report, Request, StandIn};
use toll_act::files;
use toll_model::REGION;
use toll_model::largepages;
use toll_model::site::{LEGEND, Level};
use toll_model::units::format_size;

use crate::output;
use crate::terminal::plain;

/// Apply a plan to a running process
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tollfree apply --plan server.plan --pid 4242 --dry-run

Needs CAP_SYS_NICE, or the right to ptrace the process. A region that the process has
not touched yet is retried for ten seconds, then reported. If no region could be
made huge, the exit code is 7.

Call sites are known only for processes that tollfree started. For planned blocks of another
process, tollfree selects instead the mappings that the process touches most within one second,
and reports them; if it touches none, the exit code is 7. --regions writes the addresses for
--undo, which splits the huge pages into 4 KiB pages again; memory that was allocated only by
making them huge stays allocated.")]
pub struct Args {
    /// The plan, or a list of decimal base addresses
    #[arg(long, value_name = "PLAN")]
    pub plan: PathBuf,
    /// The process
    #[arg(short, long, value_name = "PID")]
    pub pid: u32,
    /// Print what would be done, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write the region addresses to a list for --undo --plan
    #[arg(long, value_name = "FILE")]
    pub regions: Option<PathBuf>,
    /// Overwrite the list if it exists
    #[arg(long, requires = "regions")]
    pub force: bool,
    /// Split the plan's regions into 4 KiB pages again
    #[arg(long)]
    pub undo: bool,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let policy = Policy::read(&args.plan)?;
    if let Some(list) = &args.regions {
        files::check_writable(list, args.force)?;
    }
    let found = apply::find(Request {
        pid: args.pid,
        plan: args.plan,
        policy,
        dry_run: args.dry_run,
        undo: args.undo,
    })?;
    if let Some(list) = &args.regions {
        files::write(list, largepages::format(found.regions()).as_bytes())?;
    }
    let report = found.act()?;
    if json {
        output::json(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    report.check()?;
    Ok(ExitCode::SUCCESS)
}

/// The mappings selected in place of blocks that were not found, and how certain the match is.
fn stand_in_text(stand_in: &StandIn) -> String {
    let mut text = format!(
        "call sites are known only for processes that tollfree started: for {} of planned blocks, \
         whole mappings that the process touched most within {} s were selected:\n",
        format_size(stand_in.wanted_bytes),
        stand_in.window_seconds
    );
    let mut table = output::table(["mapping", "size", "in memory", "touched"]);
    for taken in &stand_in.mappings {
        table.add_row([
            format!("{:#x}", taken.start),
            format_size(taken.end - taken.start),
            format_size(taken.resident_bytes),
            format_size(taken.touched_bytes),
        ]);
    }
    text.push_str(&format!("{table}\n"));
    text
}

/// What was done with the regions.
fn done_text(done: &Done) -> String {
    let mut text = String::new();
    let mut line = |count: u64, what: &str| {
        if count != 0 {
            text.push_str(&format!("{count} {what}\n"));
        }
    };
    line(done.collapsed, "huge now");
    line(done.split, "4 KiB pages again");
    line(
        done.waiting,
        "not touched by the process yet, or no huge page free: apply again later",
    );
    line(done.failed, "failed");
    if let Some(failure) = &done.failure {
        text.push_str(&format!("first failure: {failure}\n"));
    }
    text
}

/// The report as text.
fn text(report: &Report) -> String {
    let (program, pid) = (plain(&report.program), report.pid);
    let mut text = format!("{program} (process {pid}{})\n", report.place);
    let planned = format_size(report.regions.len() as u64 * REGION);
    text.push_str(&format!(
        "planned here: {} regions ({planned})\n",
        report.regions.len()
    ));
    if !report.found.is_empty() || !report.lost.is_empty() {
        text.push_str(&format!("memory of the plan, allocations as {LEGEND}:\n"));
    }
    for (name, level) in &report.found {
        let level = match level {
            Level::Exact => "exactly",
            Level::Class | Level::Kind => "by its kind or size",
            Level::NotFound => "not",
        };
        text.push_str(&format!("  found {level}: {name}\n"));
    }
    let left = match report.stand_in {
        Some(_) => "not found by its call site",
        None => "not found, left alone",
    };
    for name in &report.lost {
        text.push_str(&format!("  {left}: {name}\n"));
    }
    if let Some(stand_in) = &report.stand_in {
        text.push_str(&stand_in_text(stand_in));
    }
    if report.dry_run {
        text.push_str("nothing was done (--dry-run)\n");
    } else {
        text.push_str(&done_text(&report.done));
        let [before, after] = [report.huge_before, report.huge_after].map(format_size);
        text.push_str(&format!(
            "memory of the process in huge pages: {before} before, {after} after\n"
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}
