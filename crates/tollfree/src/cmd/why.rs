// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree why`.

mod bill;
mod entry;
mod fixes;
mod program;
mod reading;
mod report;
mod select;
mod text;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use toll_linux::Root;

use crate::{output, terminal};
use fixes::Fixes;
use reading::Reading;
use report::Report;

/// Show why memory of a process is in 4 KiB pages, and what would change that
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tollfree why 4711
  tollfree why 4711 heap
  tollfree why 4711 0x7f12a0000000
  tollfree why 4711 /dev/shm --json

Prints a bill of the resident memory: what is in huge pages, what is in 4 KiB pages and
for which reason, with the fix for each. Unused parts of huge pages, memory that is advised,
and the program's own settings follow. Changes nothing in the process.
What cannot be read is listed with the reason and the fix. docs/guide/why.md has every rule.")]
pub struct Args {
    /// The process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    /// Only these mappings: an address, heap, stack, or a part of the name
    #[arg(value_name = "ADDRESS|MAPPING")]
    pub what: Option<String>,
    /// List all mappings instead of the largest
    #[arg(short, long)]
    pub all: bool,
    /// Use this directory as / (for tests: only its files are read)
    #[arg(long, hide = true, value_name = "PATH")]
    pub root: Option<PathBuf>,
}

pub fn run(args: Args, json: bool) -> Result<ExitCode> {
    let root = args.root.as_ref().map_or_else(Root::system, Root::at);
    let mut reading = Reading::of(&root, args.pid)?;
    if let Some(what) = &args.what {
        select::keep(&mut reading, what)?;
    }
    reading.look_closer(&root);
    let program = program::Found::of(&root, &reading);
    let fixes = Fixes::new(&root, &reading, &program);
    let report = Report::new(&root, &reading, &program, &fixes);
    if json {
        output::json(&report)?;
    } else {
        let columns = terminal::columns(io::stdout()).unwrap_or(output::COLUMNS);
        let is_part = args.what.is_some();
        output::text(&text::text(&report, columns, args.all, is_part))?;
    }
    Ok(ExitCode::SUCCESS)
}
