// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree tune`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Say whether huge pages pay for a program, where, and what to do about it
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Time limit for everything together
    #[arg(long, default_value = "10m", value_name = "TIME")]
    pub within: String,
    /// Observe a server for this long once it is ready
    #[arg(long = "for", value_name = "TIME")]
    pub for_: Option<String>,
    /// The load to drive against a server (a shell command); its time is what is compared
    #[arg(long, value_name = "CMD")]
    pub workload: Option<String>,
    /// A command that succeeds once the server is up
    #[arg(long, value_name = "CMD")]
    pub ready: Option<String>,
    /// Take the number that this expression captures from the workload's output instead of its time (larger is better)
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<String>,
    /// A process that runs already
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<u32>,
    /// Where to write the results (default: ./tollfree-PROGRAM-TIME)
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
    /// Overwrite the output folder
    #[arg(long)]
    pub force: bool,
    /// Show the command line and environment in report.html
    #[arg(long)]
    pub show_command: bool,
    /// The program and its arguments
    #[arg(last = true)]
    pub command: Vec<std::ffi::OsString>,
}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
