// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree`: find where huge pages help a program, estimate, apply and prove their effect.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("tollfree supports only Linux on x86-64");

mod actuate;
mod cmd;
mod compare;
mod error;
mod executable;
mod heat;
mod inherited;
mod install;
mod output;
mod page;
mod permanent;
mod record;
mod serve;
mod signals;
mod target;
mod thp;
mod tune;
mod units;

use std::process::ExitCode;

use clap::Parser;

use crate::cmd::Cli;

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| cmd::refuse(&error));
    let passes_through = cli.command.passes_through();
    if !passes_through {
        // `tollfree report FILE | head` exits quietly on SIGPIPE. While a target runs, tollfree
        // must
        //  survive a closed stdout or stderr.
        inherited::restore_sigpipe();
    }
    match cmd::dispatch(cli) {
        Ok(code) => code,
        Err(error) => {
            output::note(format_args!("{error:#}"));
            error::exit_code(&error, passes_through)
        }
    }
}
