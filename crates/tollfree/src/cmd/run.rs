// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree run`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Run a program under a plan
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The plan, or a list of decimal base addresses
    #[arg(long, value_name = "PLAN")]
    pub plan: std::path::PathBuf,
    /// Back fixed addresses from the hugetlb pool (largepages.txt only)
    #[arg(long)]
    pub hugetlb: bool,
    /// Let glibc make the whole heap huge
    #[arg(long)]
    pub whole_heap: bool,
    /// Write what was done here, as JSON
    #[arg(long, value_name = "FILE")]
    pub summary: Option<std::path::PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<std::ffi::OsString>,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
