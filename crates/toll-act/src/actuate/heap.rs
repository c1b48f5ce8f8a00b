// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects what makes the heap of a program huge: the allocator or the watching parent.
//!
//! glibc 2.35 and later has a tunable, `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`: malloc grows the
//! heap by whole regions and advises them before their first touch, at no cost to the program. The
//! watching parent needs no tunable but acts after the first touch: each region is copied, and the
//! program's page faults wait meanwhile.
//!
//! So the allocator is used wherever it is able and the heap is planned whole; the watcher then
//! ignores the heap. The tunable works where THP is `madvise`, also in static programs; glibc
//! ignores it under `always` and in privileged programs. It is an environment variable: child
//! processes inherit it. It cannot be limited to the heap: malloc then also advises each block of
//! at least 2 MiB that is a mapping of its own.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use toll_linux::sys::Mode;

use crate::executable::{Executable, Obstacle};

/// The environment variable of glibc's tunables.
pub const TUNABLES: &str = "GLIBC_TUNABLES";
/// The name of the tunable.
const SWITCH: &str = "glibc.malloc.hugetlb";

/// What makes the heap huge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heap {
    /// Nothing.
    Left,
    /// glibc's malloc, at the first touch.
    Allocator,
    /// The watching parent, after a region has grown.
    Watcher,
}

/// Whether the program's C library has the tunable and applies it in this THP mode.
pub fn has_switch(executable: &Executable, thp: Option<Mode>) -> bool {
    let heeded = thp == Some(Mode::Madvise) && executable.obstacle != Some(Obstacle::Privileged);
    // The loader, or a static program, contains the list of all tunables.
    let list = executable.loader();
    heeded && mentions(list.as_deref().unwrap_or(&executable.path), SWITCH)
}

/// Whether a file contains a word; false if it cannot be read.
fn mentions(path: &Path, word: &str) -> bool {
    const CHUNK: u64 = 1 << 20;
    let Ok(mut file) = File::open(path) else {
        return false;
    };
    let pattern = regex::bytes::Regex::new(&regex::escape(word)).expect("a plain word");
    let mut bytes = Vec::new();
    loop {
        let read = file.by_ref().take(CHUNK).read_to_end(&mut bytes);
        if pattern.is_match(&bytes) {
            return true;
        }
        if read.unwrap_or(0) == 0 {
            return false;
        }
        // The word may cross the chunk boundary.
        bytes.drain(..bytes.len().saturating_sub(word.len()));
    }
}

/// The value of [`TUNABLES`] with the tunable appended to the user's own.
pub fn tunables(theirs: Option<&OsStr>) -> OsString {
    let mut value = theirs.unwrap_or_default().to_owned();
    if !value.is_empty() {
        value.push(":");
    }
    value.push(SWITCH);
    value.push("=1");
    value
}

#[cfg(test)]
mod tests;
