// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of text, and how they are detected.

use toll_model::error::FormatError;

use super::reading::WHAT;
use super::{script, table};

/// The detected kind of text.
pub enum Format {
    Script,
    Report(table::Columns),
    Dump,
}

/// Detects the kind of text from a line.
pub fn detect(line: &str, number: usize) -> Result<Option<Format>, FormatError> {
    if line.starts_with("# PID") && line.contains("DSRC") {
        return Ok(Some(Format::Dump));
    }
    if !line.starts_with('#') || !line.contains("Overhead") || line.contains(" : ") {
        return Ok(None);
    }
    let columns = table::Columns::of(line).map_err(|detail| FormatError::Invalid {
        what: WHAT,
        detail: format!("line {number}: {detail}"),
    })?;
    Ok(Some(Format::Report(columns)))
}

/// Whether a line can only come from `perf script`.
pub fn looks_like_script(line: &str) -> bool {
    line.contains("|OP ")
        || line.contains(" PERF_RECORD_")
        || matches!(
            script::parse(line),
            Ok(script::Line::Sample(_) | script::Line::Sourceless)
        )
}

/// The error for a text of another kind.
pub fn foreign(line: usize, shown: &str) -> FormatError {
    FormatError::Foreign {
        expected: "perf.data file, perf script text or perf mem report text",
        found: format!("line {line} is {shown:?}"),
    }
}

/// The start of a line.
pub fn shorten(line: &str) -> String {
    line.trim().chars().take(60).collect()
}
