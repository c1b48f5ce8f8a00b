// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree compare`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Run a program without the plan, with it, and all huge, in turn, and compare
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan
    #[arg(long, value_name = "PLAN")]
    pub plan: std::path::PathBuf,
    /// Pairs to run (default: until the interval is smaller than the effect, or --within)
    #[arg(short = 'n', value_name = "N")]
    pub pairs: Option<u32>,
    /// Time limit
    #[arg(long, default_value = "5m", value_name = "TIME")]
    pub within: String,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
