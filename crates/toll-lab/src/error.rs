// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the lab and their exit codes.

use std::path::PathBuf;
use std::process::ExitCode;

use thiserror::Error;

/// Exit codes, as printed in the help.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    an error of the system or of toll-lab itself
  2    invalid command line
  3    a damaged input file, or a patch that does not apply
  4    a requirement is missing on this machine: a package, a program, disk space
  5    a kernel failed to build, a guest failed, or a test in it failed";

/// Errors with an exit code of their own.
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
    /// The message includes the end of the console and the path of its file.
    #[error("{why}; the end of its console, {}:\n{tail}", console.display())]
    Guest {
        why: String,
        console: PathBuf,
        tail: String,
    },
    #[error("{0}")]
    Test(String),
    /// A goal is not met, or not shown to be met.
    #[error("{0}")]
    Goal(String),
    #[error("{0}")]
    NotMeasured(String),
}

/// Returns the exit code for an error.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref::<LabError>() {
        Some(LabError::Usage(_)) => 2,
        Some(LabError::Input(_)) => 3,
        Some(LabError::Missing(_)) => 4,
        Some(LabError::Build(_) | LabError::Guest { .. } | LabError::Test(_)) => 5,
        Some(LabError::Goal(_)) => 1,
        Some(LabError::NotMeasured(_)) => 3,
        None => 1,
    })
}
