// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a file that this crate reads.

use thiserror::Error;

/// A profile, plan or cost table that cannot be used. The caller adds the path.
#[derive(Debug, Error)]
pub enum FormatError {
    /// The file is not of the kind that was asked for.
    #[error("not a {expected}: {found}")]
    Foreign {
        expected: &'static str,
        found: String,
    },
    /// The file is of the right kind, of a version that this build cannot read.
    #[error("{what} has format version {found}; this build reads version {known}")]
    Version {
        what: &'static str,
        found: u32,
        known: u32,
    },
    /// The file ends early or does not parse.
    #[error("{what} is damaged or cut short: {detail}")]
    Damaged { what: &'static str, detail: String },
    /// The file parses and says something impossible.
    #[error("{what}: {detail}")]
    Invalid { what: &'static str, detail: String },
}
