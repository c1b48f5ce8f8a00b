// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree apply`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Apply a plan to a process that runs already
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan
    #[arg(long, value_name = "PLAN")]
    pub plan: std::path::PathBuf,
    /// The process
    #[arg(long, value_name = "PID")]
    pub pid: u32,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Split the plan's regions into small pages again
    #[arg(long)]
    pub undo: bool,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
