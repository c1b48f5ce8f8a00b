// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which memory of a program is to be huge.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use toll_model::error::FormatError;
use toll_model::largepages;
use toll_model::plan::Plan;

use crate::files;

/// Which memory of a program is to be huge.
#[derive(Debug, Clone)]
pub enum Policy {
    /// As the program runs without tollfree.
    None,
    /// Nothing (PR_SET_THP_DISABLE).
    Never,
    /// All memory that can be.
    All,
    /// The memory that a plan selects.
    Plan(Box<Plan>),
    /// These regions, by their addresses (as in `largepages.txt`).
    Regions(Vec<u64>),
}

impl Policy {
    /// Reads a plan, or a list of decimal base addresses.
    ///
    /// # Errors
    /// [`crate::error::UserError::Input`] with the file and the error in it.
    pub fn read(path: &Path) -> Result<Policy> {
        let bytes = fs::read(path).with_context(|| format!("{}", path.display()))?;
        let policy = match is_list(&bytes) {
            true => largepages::parse(&String::from_utf8_lossy(&bytes)).map(Policy::Regions),
            false => Plan::from_toml(&bytes).map(|plan| Policy::Plan(Box::new(plan))),
        };
        policy.map_err(|source: FormatError| files::in_file(path, source))
    }

    /// One word for summaries.
    pub fn name(&self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Never => "never",
            Policy::All => "all",
            Policy::Plan(_) => "plan",
            Policy::Regions(_) => "regions",
        }
    }
}

/// Whether a file is a list of addresses: its first line with content begins with a digit. An empty
/// file is an empty list.
fn is_list(bytes: &[u8]) -> bool {
    bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty() && !line.starts_with(b"#"))
        .is_none_or(|line| line[0].is_ascii_digit())
}
