// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads recordings of perf that tollfree did not make.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use toll_act::files::in_file;
use toll_model::error::FormatError;

pub use crate::record::perf::Imported;
use crate::record::perf::{self, Reading};

/// Reads a file in the format that its first bytes show.
///
/// # Errors
/// The file cannot be read; [`toll_act::error::UserError::Input`] if it is in no supported format;
/// [`toll_act::error::UserError::Missing`] if perf is needed and not installed.
pub fn read(path: &Path, only: Option<Range<u64>>) -> Result<Imported> {
    let open = || -> std::io::Result<(File, Vec<u8>)> {
        let mut file = File::open(path)?;
        let mut head = Vec::new();
        (&mut file).take(4096).read_to_end(&mut head)?;
        Ok((file, head))
    };
    let (mut file, head) = open().with_context(|| format!("{}: cannot be read", path.display()))?;
    let reading = Reading {
        only,
        ..Reading::default()
    };
    if perf::is_perf_data(&head) {
        return perf::from_perf_data(path, &reading);
    }
    if let Some(found) = foreign(&head) {
        let expected = "perf.data file, perf script text or perf mem report text";
        let found = found.to_owned();
        return Err(in_file(path, FormatError::Foreign { expected, found }));
    }
    // A pipe cannot be rewound: chain the bytes already read in front.
    let result = match file.rewind() {
        Ok(()) => perf::from_text(BufReader::with_capacity(1 << 16, file), &reading),
        Err(_) => perf::from_text(BufReader::new(head.chain(file)), &reading),
    };
    result.map_err(|source| in_file(path, source))
}

/// Describes a file of another kind, often given by mistake.
fn foreign(head: &[u8]) -> Option<&'static str> {
    match head {
        [] => Some("the file is empty"),
        [0x1f, 0x8b, ..] => Some("it is compressed with gzip: decompress it first"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("it is compressed with zstd: decompress it first"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("it is compressed with xz: decompress it first"),
        _ if head.contains(&0) => Some("it is binary"),
        _ if head.starts_with(b"{") && contains(head, b"tollfree-profile") => {
            Some("it is already a profile")
        }
        _ => None,
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|w| w == needle)
}
