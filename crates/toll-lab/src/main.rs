// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab`: compares stock and patched kernels side by side.

use std::process::ExitCode;

use clap::Parser;
use toll_lab::cmd::{self, Cli};
use toll_lab::{error, output};

fn main() -> ExitCode {
    match cmd::dispatch(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(format_args!("{error:#}"));
            error::exit_code(&error)
        }
    }
}
