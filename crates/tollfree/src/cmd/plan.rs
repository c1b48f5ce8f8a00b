// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree plan`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Price a profile's regions and say which to make huge
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The profile
    pub file: std::path::PathBuf,
    /// The plan to write
    #[arg(short, long, value_name = "PLAN")]
    pub output: Option<std::path::PathBuf>,
    /// Take the N regions with the most misses, whatever they cost
    #[arg(long, value_name = "N", conflicts_with = "budget")]
    pub top: Option<u64>,
    /// Use at most this much memory for huge pages
    #[arg(long, value_name = "SIZE")]
    pub budget: Option<String>,
    /// Format of the plan
    #[arg(long, value_enum, default_value = "toml")]
    pub format: Format,
    /// Time of one run without the plan, if it is known (1.5s, 300ms)
    #[arg(long, value_name = "TIME")]
    pub baseline: Option<String>,
    /// Cost table (default: this machine's, calibrated or preset)
    #[arg(long, value_name = "FILE")]
    pub costs: Option<std::path::PathBuf>,
    /// Overwrite the plan if it exists
    #[arg(long)]
    pub force: bool,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}

/// How a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    Toml,
    /// Decimal base addresses, one a line: for mappings at fixed addresses
    Largepages,
}
