// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a user can do wrong, and the exit code of each.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done (for `tune`: a verdict was reached, "do nothing" included) |
//! | 1 | an error of the system or of tollfree itself |
//! | 2 | wrong usage of the command line |
//! | 3 | an input file that is foreign, damaged or made for another program |
//! | 4 | this machine lacks something that was asked for by name |
//! | 5 | the program that was to be examined failed |
//! | 130 | interrupted; what was recorded so far is kept and marked |
//!
//! `record`, `run` and `apply` end with the target's own status; their own
//! errors are 125, a program that cannot be executed is 126, one that does
//! not exist is 127 (as env(1) and timeout(1) do).

use std::path::PathBuf;
use std::process::ExitCode;

use thiserror::Error;
use toll_model::error::FormatError;

/// Errors that have an exit code of their own.
#[derive(Debug, Error)]
pub enum UserError {
    #[error("{0}")]
    Usage(String),
    #[error("{}: {source}", path.display())]
    Input { path: PathBuf, source: FormatError },
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Target(String),
    #[error("{program}: cannot be executed: {detail}")]
    NotExecutable { program: String, detail: String },
    #[error("{program}: not found")]
    NotFound { program: String },
    #[error("interrupted")]
    Interrupted,
}

/// The exit code for an error.
pub fn exit_code(error: &anyhow::Error, passes_through: bool) -> ExitCode {
    let code = match error.downcast_ref::<UserError>() {
        Some(UserError::NotExecutable { .. }) => 126,
        Some(UserError::NotFound { .. }) => 127,
        Some(UserError::Interrupted) => 130,
        _ if passes_through => 125,
        Some(UserError::Usage(_)) => 2,
        Some(UserError::Input { .. }) => 3,
        Some(UserError::Missing(_)) => 4,
        Some(UserError::Target(_)) => 5,
        None => 1,
    };
    ExitCode::from(code)
}
