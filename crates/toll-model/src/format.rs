// SPDX-License-Identifier: MIT OR Apache-2.0
//! Common parts of reading and writing all file formats.
//!
//! A reader parses the document first: only if it does not parse, or if its format name or version
//! is wrong, the file is inspected again to describe what it is.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::FormatError;

/// A file format of this crate.
pub(crate) struct Format {
    /// Name in messages: `profile`.
    pub what: &'static str,
    /// Value of its `format` field.
    pub name: &'static str,
    /// The version that this build writes and reads.
    pub version: u32,
}

/// The two fields of every file, both optional so that any document parses.
#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    version: Option<u32>,
}

impl Format {
    /// Parses a JSON document of this format.
    pub fn read_json<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, FormatError> {
        serde_json::from_slice(bytes).map_err(|error| {
            // A serde_json error includes line and column.
            let header = serde_json::from_slice::<Header>(bytes).ok();
            self.explain(header, looks_like(bytes), error.to_string())
        })
    }

    /// Parses a TOML document of this format.
    pub fn read_toml<T: DeserializeOwned>(&self, text: &str) -> Result<T, FormatError> {
        toml::from_str(text).map_err(|error| {
            let header = toml::from_str::<Header>(text).ok();
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let detail = format!("line {line}: {}", error.message());
            self.explain(header, looks_like(text.as_bytes()), detail)
        })
    }

    /// Decodes the file as text.
    pub fn utf8<'a>(&self, bytes: &'a [u8]) -> Result<&'a str, FormatError> {
        std::str::from_utf8(bytes).map_err(|error| {
            let detail = format!("byte {} is not UTF-8", error.valid_up_to());
            self.explain(None, looks_like(bytes), detail)
        })
    }

    /// Checks name and version of a parsed document.
    pub fn check(&self, format: &str, version: u32) -> Result<(), FormatError> {
        if format != self.name {
            return Err(self.foreign(format!("its format is {:?}", clip(format))));
        }
        if version != self.version {
            return Err(FormatError::Version {
                what: self.what,
                found: version,
                known: self.version,
            });
        }
        Ok(())
    }

    /// Returns the error for a field that parses but is invalid.
    pub fn invalid(&self, detail: String) -> FormatError {
        FormatError::Invalid {
            what: self.what,
            detail,
        }
    }

    /// Returns the error for a file that is truncated or does not parse.
    pub fn damaged(&self, detail: String) -> FormatError {
        FormatError::Damaged {
            what: self.what,
            detail,
        }
    }

    /// Returns the error for a file of another kind.
    pub fn foreign(&self, found: String) -> FormatError {
        FormatError::Foreign {
            expected: self.what,
            found,
        }
    }

    /// Returns why a document does not parse: another format, another version, or damage.
    fn explain(&self, header: Option<Header>, looks: Looks, detail: String) -> FormatError {
        if let Some(Header { format, version }) = header {
            let Some(format) = format else {
                return self.foreign("it has no field \"format\"".to_owned());
            };
            let version = version.unwrap_or(self.version);
            return match self.check(&format, version) {
                Err(error) => error,
                Ok(()) => self.damaged(detail),
            };
        }
        match looks {
            Looks::Ours => self.damaged(detail),
            Looks::Like(found) => self.foreign(found.to_owned()),
        }
    }
}

/// Classification of a file that does not parse.
enum Looks {
    /// Contains one of our format names near its start: damaged rather than foreign.
    Ours,
    Like(&'static str),
}

fn looks_like(bytes: &[u8]) -> Looks {
    let head = &bytes[..bytes.len().min(256)];
    if head.windows(9).any(|window| window == b"tollfree-") {
        return Looks::Ours;
    }
    match head {
        [] => Looks::Like("the file is empty"),
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', ..] => {
            Looks::Like("this is perf.data (see tollfree import)")
        }
        [0x7f, b'E', b'L', b'F', ..] => Looks::Like("this is a program"),
        _ if head.contains(&0) => Looks::Like("this is a binary file"),
        _ => Looks::Like("it does not begin like one"),
    }
}

/// Returns the start of a text, for error messages.
pub(crate) fn clip(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Returns the line, from 1, that contains byte `at`.
fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// Finds the first field that is not a finite number of at least `least`.
pub(crate) fn first_impossible(fields: &[(&'static str, f64)], least: f64) -> Option<String> {
    fields
        .iter()
        .find(|(_, value)| !(value.is_finite() && *value >= least))
        .map(|(name, value)| format!("{name} is {value}"))
}
