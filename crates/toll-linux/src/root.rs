// SPDX-License-Identifier: MIT OR Apache-2.0
//! The path used in place of `/`.

use std::io;
use std::path::{Path, PathBuf};

/// Location of `/proc` and `/sys`: the machine itself, or a directory of fixtures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// Returns the root of the running machine.
    pub fn system() -> Root {
        Root(PathBuf::from("/"))
    }

    /// Returns a directory as the root.
    pub fn at(path: impl Into<PathBuf>) -> Root {
        Root(path.into())
    }

    /// Whether this is the running machine, so that system calls may be used too.
    pub fn is_system(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Returns an absolute or relative `path` below this root.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Reads a file. Bytes that are not UTF-8 are replaced.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let bytes = std::fs::read(self.path(path))?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        })
    }

    /// Returns the trimmed text of a file, if it can be read.
    pub fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        self.read(path).ok().map(|text| text.trim().to_owned())
    }

    /// Returns the number in a file, if it can be read and parsed.
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.line(path)?.parse().ok()
    }

    /// Returns the names in a directory, sorted; empty if the directory does not exist.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}
