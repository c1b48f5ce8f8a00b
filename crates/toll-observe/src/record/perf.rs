// SPDX-License-Identifier: MIT OR Apache-2.0
//! The source `perf`: memory accesses sampled by the CPU, with data address and TLB level.
//!
//! A count is the number of samples with a page walk, times their period if the recording has it.
//! This module reads text that perf prints, line by line, and keeps only the counts, so the size of
//! a recording does not matter.
//!
//! | file | holds |
//! |---|---|
//! | `tool` | runs perf: to record, and to print its recordings |
//! | `reader` | reads the text of a recording, and counts |
//! | `detect` | the kind of text |
//! | `script`, `table`, `tlb` | the lines of each kind of text |
//! | `code`, `pending`, `stacks` | the code of each sample, and the misses of each call chain |
//! | `place` | from an address to a site, with `space`, `spans` and `layout` |
//! | `reading` | options and results of reading |

mod code;
mod detect;
mod layout;
mod pending;
mod place;
mod reader;
mod reading;
mod script;
mod space;
mod spans;
mod stacks;
mod table;
mod tlb;
mod tool;

use std::io::BufRead;
use std::path::Path;

use anyhow::Result;
use toll_model::error::FormatError;

use reader::Reader;
pub use reading::{Imported, Reading};
pub use tool::record;

/// Reads any of the texts, detected from the content.
///
/// # Errors
/// The format error, with the line number.
pub(crate) fn from_text(reader: impl BufRead, reading: &Reading) -> Result<Imported, FormatError> {
    Reader::new(reading).read(reader, None)
}

/// Reads a file of `perf record` or `perf mem record` through `perf script`.
///
/// # Errors
/// A UserError if perf is not installed or cannot read the file; else as [`from_text`].
pub(crate) fn from_perf_data(path: &Path, reading: &Reading) -> Result<Imported> {
    tool::script(path, reading)
}

/// Whether a file begins like a perf.data file.
pub(crate) fn is_perf_data(head: &[u8]) -> bool {
    [b"PERFILE2", b"2ELIFREP", b"PERFFILE"]
        .iter()
        .any(|magic| head.starts_with(*magic))
}

#[cfg(test)]
mod tests;
