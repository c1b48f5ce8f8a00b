// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program is: its name, libraries, allocator, and their versions. Files are read; nothing is
//! executed.

mod version;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};
use toll_linux::proc::{Kind, Mapping};

pub use version::Version;

/// Larger program files are not searched.
const LARGEST: u64 = 128 << 20;

/// Properties of a program, found while it ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    /// Base name of the process with the most memory (`python3.11`, `redis-server`).
    pub program: String,
    /// Base names of its mapped libraries.
    pub libraries: Vec<String>,
    /// The allocator's configuration variable, if jemalloc is linked statically.
    pub jemalloc_variable: Option<String>,
    /// Versions of known programs and libraries (`glibc`, `go`, ...), as far as they were found.
    #[serde(default)]
    pub versions: BTreeMap<String, Version>,
}

impl Traits {
    /// Finds the traits of a program: `file` has its contents, `mapped` are the files that it maps.
    pub fn of(program: &Path, file: &Path, mapped: &[PathBuf]) -> Traits {
        let text = contents(file).unwrap_or_default();
        let mut libraries: Vec<String> = mapped.iter().map(|file| base_name(file)).collect();
        libraries.sort();
        libraries.dedup();
        Traits {
            program: base_name(program),
            libraries,
            jemalloc_variable: jemalloc_variable(&text),
            versions: versions::versions(program, &text, mapped),
        }
    }

    /// Whether a library is mapped with a name that starts so.
    pub fn uses(&self, prefix: &str) -> bool {
        self.libraries
            .iter()
            .any(|library| library.starts_with(prefix))
    }

    pub fn is(&self, name: &str) -> bool {
        self.program == name
    }

    /// The variable that configures its jemalloc, if it has one.
    pub fn jemalloc(&self) -> Option<&str> {
        let linked = self.uses("libjemalloc").then_some("MALLOC_CONF");
        self.jemalloc_variable.as_deref().or(linked)
    }
}

/// The files that a process maps, each once.
pub fn mapped_files<'a>(mappings: impl IntoIterator<Item = &'a Mapping>) -> Vec<PathBuf> {
    let file = |mapping: &Mapping| match mapping.kind() {
        Kind::File(path) => Some(PathBuf::from(path)),
        _ => None,
    };
    let mut files: Vec<PathBuf> = mappings.into_iter().filter_map(file).collect();
    files.sort();
    files.dedup();
    files
}

fn contents(file: &Path) -> Option<Vec<u8>> {
    let is_small = fs::metadata(file).ok()?.len() <= LARGEST;
    is_small.then(|| fs::read(file).ok())?
}

fn base_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The configuration variable of a jemalloc inside the program file, found in its text.
fn jemalloc_variable(program: &[u8]) -> Option<String> {
    // Prefixed builds (Rust's, Facebook's) read a variable of another name.
    let name = Regex::new(r"(?-u)\x00((?:_RJEM_|JE_)?MALLOC_CONF)\x00").expect("valid");
    let found = name.captures(program)?;
    Some(String::from_utf8_lossy(&found[1]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_file_shows_its_allocator() {
        assert_eq!(jemalloc_variable(b"\x7fELF MALLOC_CONF"), None);
        let both = b"\x00_RJEM_MALLOC_CONF\x00\x00MALLOC_CONF\x00";
        assert_eq!(
            jemalloc_variable(both).as_deref(),
            Some("_RJEM_MALLOC_CONF")
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_leaves_the_names() {
        let mapped = ["/b/libx.so", "/a/libx.so", "/a/liba.so"].map(PathBuf::from);
        let traits = Traits::of(Path::new("/usr/bin/x"), Path::new("/nonexistent"), &mapped);
        assert_eq!(traits.program, "x");
        assert_eq!(traits.libraries, ["liba.so", "libx.so"]);
    }
}
