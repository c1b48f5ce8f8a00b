// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors in the files that this crate reads.

use thiserror::Error;

/// Why a profile, plan or cost table cannot be used. The caller adds the path.
#[derive(Debug, Error)]
pub enum FormatError {
    /// The file is not of the requested kind.
    #[error("not a {expected}: {found}")]
    Foreign {
        expected: &'static str,
        found: String,
    },
    /// The file is of the right kind, in a version that this build cannot read.
    #[error("{what} has format version {found}; this build reads version {known}")]
    Version {
        what: &'static str,
        found: u32,
        known: u32,
    },
    /// The file is truncated or does not parse.
    #[error("{what} is damaged or cut short: {detail}")]
    Damaged { what: &'static str, detail: String },
    /// The file parses and contains invalid values.
    #[error("{what}: {detail}")]
    Invalid { what: &'static str, detail: String },
}
