// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree`: finds, prices, applies and proves huge pages for any program.

mod cmd;
mod error;
mod heat;
mod inherited;
mod install;
mod output;
mod page;
mod record;
mod units;
mod signals;
mod target;

use std::process::ExitCode;

use clap::Parser;

use crate::cmd::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let passes_through = cli.command.passes_through();
    match cmd::dispatch(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tollfree: {error:#}");
            error::exit_code(&error, passes_through)
        }
    }
}
