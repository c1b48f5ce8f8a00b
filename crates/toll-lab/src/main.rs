// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab`: compares stock and patched kernels side by side.

use std::process::ExitCode;

use clap::Parser;
use toll_lab::cmd::{self, Cli};
use toll_lab::{error, output};

fn main() -> ExitCode {
    end_with_reader();
    match cmd::dispatch(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(format_args!("{error:#}"));
            error::exit_code(&error)
        }
    }
}

/// Ends quietly if the reader of our output ends, as in `toll-lab list | head`: the runtime ignores
/// SIGPIPE, and its macros panic instead. Guests end with us.
fn end_with_reader() {
    // SAFETY: the default disposition needs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
