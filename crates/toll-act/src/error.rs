// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of the user, the input or the machine, each with an exit code of its own.

use std::path::PathBuf;

use thiserror::Error;
use toll_model::error::FormatError;

/// What to do about a process that may not be read.
pub const OF_OTHERS: &str =
    "run tollfree as its user, or as root (in a container also: --cap-add SYS_PTRACE)";

/// Why a temporary directory is missing, and what to do about it.
pub const NO_DIRECTORY: &str = "no temporary directory (TMPDIR names another)";

/// Errors that have their own exit code.
#[derive(Debug, Error)]
pub enum UserError {
    #[error("{0}")]
    Usage(String),
    #[error("{}", path.display())]
    Input { path: PathBuf, source: FormatError },
    /// A valid file for a program other than the one given.
    #[error("{0}")]
    OtherProgram(String),
    /// A valid file of a kind that the option does not accept.
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
    /// A measured slow-down above the given threshold.
    #[error("{0}")]
    Slower(String),
    /// No region could be made huge.
    #[error("{0}")]
    NotApplied(String),
    #[error("interrupted")]
    Interrupted,
}
