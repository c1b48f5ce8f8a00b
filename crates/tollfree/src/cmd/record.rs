// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree record`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Record a profile of a program
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The profile to write
    #[arg(short, long, value_name = "FILE")]
    pub output: std::path::PathBuf,
    /// Where the counts come from
    #[arg(long, value_enum, default_value = "auto")]
    pub source: crate::record::SourceChoice,
    /// Count only this address range, START..END (hexadecimal or decimal)
    #[arg(long, value_name = "RANGE")]
    pub only: Option<String>,
    /// Record the program as it runs under this plan
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<std::path::PathBuf>,
    /// TLB preset for the simulator (default: this CPU)
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Share of the run that the simulator instruments, 0..1
    #[arg(long, value_name = "SHARE")]
    pub sample: Option<f64>,
    /// Overwrite the profile if it exists
    #[arg(long)]
    pub force: bool,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
