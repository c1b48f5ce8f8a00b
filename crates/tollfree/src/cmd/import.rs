// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree import`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Make a profile from perf.data, perf script text, or perf mem report text
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to read
    pub file: std::path::PathBuf,
    /// The profile to write
    #[arg(short, long, value_name = "FILE")]
    pub output: std::path::PathBuf,
    /// Count only this address range, START..END (hexadecimal or decimal)
    #[arg(long, value_name = "RANGE")]
    pub only: Option<String>,
    /// Overwrite the profile if it exists
    #[arg(long)]
    pub force: bool,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
