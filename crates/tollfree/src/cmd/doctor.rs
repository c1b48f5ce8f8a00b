// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree doctor`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Say what this machine offers, and how to get what is missing
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn run(_args: Args, _json: bool) -> Result<ExitCode> {
    bail!("not built yet")
}
