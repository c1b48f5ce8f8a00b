// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line; one file per subcommand.

mod equal;
mod kernel;
mod selftest;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::error::EXIT_CODES;

/// Stock and patched kernels, side by side, counted by a virtual PMU.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Kernel(kernel::Args),
    Equal(equal::Args),
    Selftest(selftest::Args),
}

pub fn dispatch(cli: Cli) -> Result<()> {
    match cli.command {
        Command::Kernel(args) => kernel::run(&args),
        Command::Equal(args) => equal::run(&args),
        Command::Selftest(args) => selftest::run(&args),
    }
}
