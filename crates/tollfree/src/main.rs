// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree`: find where huge pages help a program, estimate, apply and prove their effect.

mod cmd;
mod exit;
mod output;
mod page;
mod terminal;

use std::process::ExitCode;

use clap::Parser;
use toll_act::{inherited, messages};

use crate::cmd::Cli;

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| cmd::refuse(&error));
    let passes_through = cli.command.passes_through();
    if !passes_through {
        // `tollfree report FILE | head` exits quietly on SIGPIPE. While a target runs, tollfree
        // must survive a closed stdout or stderr.
        inherited::restore_sigpipe();
    }
    match cmd::dispatch(cli) {
        Ok(code) => code,
        Err(error) => {
            messages::note(format_args!("{error:#}"));
            exit::code(&error, passes_through)
        }
    }
}
