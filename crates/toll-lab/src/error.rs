// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong in the lab, and the exit code of each.

use std::path::PathBuf;
use std::process::ExitCode;

use thiserror::Error;

/// The exit codes, as the help prints them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    an error of the system or of toll-lab itself
  2    wrong usage of the command line
  3    an input file that is damaged, or a patch that does not apply
  4    this machine lacks something that was asked for: a package, a program, disk
  5    a kernel could not be built, a guest failed, or a test in it did";

/// Errors that have an exit code of their own.
#[derive(Debug, Error)]
pub enum LabError {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Input(String),
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Build(String),
    /// The end of the console says why, its file says all.
    #[error("{why}; the end of its console, {}:\n{tail}", console.display())]
    Guest {
        why: String,
        console: PathBuf,
        tail: String,
    },
    #[error("{0}")]
    Test(String),
}

/// The exit code for an error.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref::<LabError>() {
        Some(LabError::Usage(_)) => 2,
        Some(LabError::Input(_)) => 3,
        Some(LabError::Missing(_)) => 4,
        Some(LabError::Build(_) | LabError::Guest { .. } | LabError::Test(_)) => 5,
        None => 1,
    })
}
