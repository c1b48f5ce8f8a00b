// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree top`.

mod columns;
mod display;
mod document;
pub mod gaps;
pub mod rows;
mod table;
mod text;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use toll_act::error::UserError;
use toll_act::signals;
use toll_linux::Root;
use toll_linux::counters::Live;
use toll_model::units::parse_duration;

use display::{Display, Next};
use document::Document;

/// Shortest interval.
const SHORTEST: Duration = Duration::from_millis(10);

/// Show which processes and cgroups lose CPU time to virtual memory, live
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollfree top
  tollfree top --once --json > now.json
  tollfree top -n 10 -I 5s > minute.txt

Shows for each process and cgroup the CPU time lost to page faults, with its bounds, beside
what it used, and its memory in huge pages; for the machine also TLB shootdowns, page walks
(with a PMU), reclaim and compaction. What cannot be measured here is listed with the reason
and the fix. docs/guide/top.md explains the columns.

On a terminal it is drawn in place until q or Ctrl-C (h lists the keys). Elsewhere, and with
-n and --once, each update is a block of lines; with --json, an object per line. Without
root, the memory of other users' processes cannot be read.")]
pub struct Args {
    /// Time between two updates
    #[arg(short = 'I', long, default_value = "1s", value_name = "TIME", value_parser = parse_duration)]
    pub interval: Duration,
    /// Number of updates (default: until interrupted)
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub times: Option<u64>,
    /// Print one interval
    #[arg(long, conflicts_with = "times")]
    pub once: bool,
    /// Use this directory as / (for tests)
    #[arg(long, hide = true, value_name = "PATH")]
    pub root: Option<PathBuf>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    if args.interval < SHORTEST {
        return Err(UserError::Usage("--interval: at least 10 ms".to_owned()).into());
    }
    let root = args.root.as_ref().map_or_else(Root::system, Root::at);
    let costs = super::options::event_costs(&root);
    let mut live = Live::new(&root);
    let mut before = live.look();
    let _signals = signals::watch().context("no pipe for signals")?;
    let mut display = Display::new(&args, json)?;
    let mut shown = 0;
    while display.wait()? == Next::Look {
        let now = live.look();
        display.show(Document::new(&before, &now, &costs))?;
        before = now;
        shown += 1;
        if args.once || Some(shown) == args.times {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
