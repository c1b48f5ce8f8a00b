// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree completions` and `tollfree man`: shell completions and manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cmd::Cli;

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
pub struct Args {
    pub shell: clap_complete::Shell,
}

/// Write the manual pages into a directory
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    pub directory: PathBuf,
}

pub fn run(args: Args) -> Result<ExitCode> {
    clap_complete::generate(
        args.shell,
        &mut Cli::command(),
        "tollfree",
        &mut std::io::stdout(),
    );
    Ok(ExitCode::SUCCESS)
}

pub fn man(args: ManArgs) -> Result<ExitCode> {
    clap_mangen::generate_to(Cli::command(), &args.directory)
        .with_context(|| format!("{}: cannot be written", args.directory.display()))?;
    Ok(ExitCode::SUCCESS)
}
