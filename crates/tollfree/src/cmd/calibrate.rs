// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree calibrate`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Measure what translation and huge pages cost on this machine
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Time limit
    #[arg(long, default_value = "60s", value_name = "TIME")]
    pub within: String,
    /// Write the table here (default: the cache)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<std::path::PathBuf>,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
