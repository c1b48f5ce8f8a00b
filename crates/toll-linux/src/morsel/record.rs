// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of copies in the hidden directory.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{Identity, Source};

/// Maximum length of a file name.
pub(super) const NAME_MAX: usize = 255;
/// Replaces the front of a path that is too long.
const CUT: &str = "...";

/// A second name of a copy.
#[derive(Debug)]
pub(super) struct Record {
    pub path: PathBuf,
    pub name: OsString,
    pub device: u64,
    pub inode: u64,
    pub identity: Identity,
    /// Digest of the whole content, hexadecimal.
    pub digest: String,
    pub source: OsString,
}

/// Returns the name of a shared copy of a file in this state; it does not reveal the file.
pub(super) fn key(identity: &Identity) -> OsString {
    let digest = blake3::hash(identity.to_string().as_bytes());
    digest.to_hex().as_str().into()
}

/// Formats `IDENTITY@DIGEST=SOURCE`, with the source cut at the front if it is too long.
pub(super) fn record_name(identity: &Identity, digest: &str, source: &Path) -> OsString {
    let mut name = format!("{identity}@{digest}=").into_bytes();
    let room = NAME_MAX.saturating_sub(name.len());
    let mut escaped: Vec<Vec<u8>> = source.as_os_str().as_bytes().iter().map(escape).collect();
    let length = |escaped: &[Vec<u8>]| escaped.iter().map(Vec::len).sum::<usize>();
    if length(&escaped) > room {
        let mut from = 0;
        while length(&escaped[from..]) + CUT.len() > room {
            from += 1;
        }
        escaped.splice(..from, [CUT.as_bytes().to_vec()]);
    }
    name.extend(escaped.concat());
    OsString::from_vec(name)
}

/// Parses the name of a record into identity, digest and source.
pub(super) fn parse(name: &OsStr) -> Option<(Identity, String, OsString)> {
    let name = name.as_bytes();
    let cut = name.iter().position(|byte| *byte == b'=')?;
    let (identity, digest) = std::str::from_utf8(&name[..cut]).ok()?.split_once('@')?;
    let source = unescape(&name[cut + 1..]);
    Some((identity.parse().ok()?, digest.to_owned(), source))
}

/// Whether the source of a record is this path, as far as the record stores it.
pub(super) fn is_source(recorded: &OsStr, path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    match recorded.as_bytes().strip_prefix(CUT.as_bytes()) {
        Some(end) => path.ends_with(end),
        None => recorded.as_bytes() == path,
    }
}

/// Whether a copy is of an earlier state of a file: the same file, or another one with its path.
pub(super) fn is_older(was: &Identity, recorded: Option<&OsStr>, source: &Source) -> bool {
    let is = &source.identity;
    let is_same_file = (was.device, was.inode) == (is.device, is.inode);
    was != is && (is_same_file || recorded.is_some_and(|path| is_source(path, &source.path)))
}

fn escape(byte: &u8) -> Vec<u8> {
    match byte {
        b'/' => b"%2f".to_vec(),
        b'%' => b"%25".to_vec(),
        other => vec![*other],
    }
}

fn unescape(mut text: &[u8]) -> OsString {
    let mut plain = Vec::new();
    while let [first, rest @ ..] = text {
        let (byte, rest) = match (first, rest) {
            (b'%', [b'2', b'f', rest @ ..]) => (b'/', rest),
            (b'%', [b'2', b'5', rest @ ..]) => (b'%', rest),
            _ => (*first, rest),
        };
        plain.push(byte);
        text = rest;
    }
    OsString::from_vec(plain)
}

#[cfg(test)]
mod tests;
