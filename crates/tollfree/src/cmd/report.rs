// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree report`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Show a profile as a table and a heat strip
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The profile to show
    pub file: std::path::PathBuf,
    /// Write a self-contained page here
    #[arg(long, value_name = "FILE")]
    pub html: Option<std::path::PathBuf>,
    /// A second profile, recorded under the plan
    #[arg(long, value_name = "FILE")]
    pub after: Option<std::path::PathBuf>,
    /// Overwrite the page if it exists
    #[arg(long)]
    pub force: bool,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
