// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a user can do wrong, and the exit code of each.
//!
//! [`EXIT_CODES`] is the list, as the help prints it. The program that `run` and
//! `record` start may end with any status of its own, so what goes wrong in
//! tollfree itself is 125 there (as with env(1) and timeout(1)).

use std::path::PathBuf;
use std::process::ExitCode;

use thiserror::Error;
use toll_model::error::FormatError;

/// The exit codes, for people.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done (tune: a verdict was reached, \"do nothing\" included)
  1    an error of the system or of tollfree itself
  2    wrong usage of the command line
  3    an input file that is foreign, damaged, unfit, or made for another program
  4    this machine lacks something that was asked for
  5    the program that was to be examined failed
  6    compare: the plan is slower than --fail-if-slower allows
  7    apply: none of the planned regions could be made huge, or nothing of the plan
       can be found in the process
  126  the program cannot be executed
  127  the program does not exist
  130  interrupted; what was recorded so far is kept and marked

run and record end as the program ended that they started: with its exit code,
or by the signal that killed it. Instead of 1, 3, 4 and 5 they say 125.";

/// Errors that have an exit code of their own.
#[derive(Debug, Error)]
pub enum UserError {
    #[error("{0}")]
    Usage(String),
    #[error("{}", path.display())]
    Input { path: PathBuf, source: FormatError },
    /// A file that is right in itself, for another program than the one given.
    #[error("{0}")]
    OtherProgram(String),
    /// A file that cannot be what it was given as.
    #[error("{0}")]
    UnfitFile(String),
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Target(String),
    #[error("{program}: cannot be executed: {detail}")]
    NotExecutable { program: String, detail: String },
    #[error("{program}: not found")]
    NotFound { program: String },
    /// A measured slow-down beyond the threshold that was given.
    #[error("{0}")]
    Slower(String),
    /// Every region that was to be made huge failed.
    #[error("{0}")]
    NotApplied(String),
    #[error("interrupted")]
    Interrupted,
}

/// The exit code for an error.
pub fn exit_code(error: &anyhow::Error, passes_through: bool) -> ExitCode {
    let code = match error.downcast_ref::<UserError>() {
        Some(UserError::Usage(_)) => 2,
        Some(UserError::NotExecutable { .. }) => 126,
        Some(UserError::NotFound { .. }) => 127,
        Some(UserError::Interrupted) => 130,
        _ if passes_through => 125,
        Some(UserError::Input { .. } | UserError::OtherProgram(_) | UserError::UnfitFile(_)) => 3,
        Some(UserError::Missing(_)) => 4,
        Some(UserError::Target(_)) => 5,
        Some(UserError::Slower(_)) => 6,
        Some(UserError::NotApplied(_)) => 7,
        None => 1,
    };
    ExitCode::from(code)
}
