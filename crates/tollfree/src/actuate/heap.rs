// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who makes the heap of a program huge.
//!
//! glibc 2.35 and later has a switch, `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`: malloc grows the
//! heap by whole regions and advises them before their first touch, which costs the program
//! nothing. The watching parent needs no switch, but it comes after the first touch:
//! each region is copied, and the program's page faults wait meanwhile.
//!
//! So the allocator does it wherever it can and the heap is wanted whole, and then the watcher
//! has no part in the heap. The switch works where THP is `madvise`, in static programs too;
//! glibc ignores it under `always` and in privileged programs. It is an environment
//! variable: programs that the target starts inherit it. It cannot be limited to the
//! heap: malloc then also advises each block of at least 2 MiB that is a mapping of its own.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use toll_linux::sys::Mode;

use crate::executable::{Executable, Obstacle};

/// The variable that glibc's switches are in.
pub const TUNABLES: &str = "GLIBC_TUNABLES";
/// The switch by its name.
const SWITCH: &str = "glibc.malloc.hugetlb";

/// Who makes the heap huge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Heap {
    /// Nobody.
    Left,
    /// glibc's malloc, at the first touch.
    Allocator,
    /// The watching parent, once a region has grown.
    Watcher,
}

/// Whether the program's C library has the switch and will heed it, where THP is in this mode.
pub fn has_switch(executable: &Executable, thp: Option<Mode>) -> bool {
    let heeded = thp == Some(Mode::Madvise) && executable.obstacle != Some(Obstacle::Privileged);
    // The list of all switches is in the loader, or in the program that has none.
    let list = executable.loader();
    heeded && mentions(list.as_deref().unwrap_or(&executable.path), SWITCH)
}

/// Whether a file holds a word; false if it cannot be read.
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
        // The word may lie across the border.
        bytes.drain(..bytes.len().saturating_sub(word.len()));
    }
}

/// The value of [`TUNABLES`] with the switch behind what the user has there.
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
mod tests {
    use super::*;

    fn program(name: &str) -> Executable {
        Executable::of(&[name.into()]).unwrap()
    }

    #[test]
    fn the_switch_is_heeded_under_madvise_only() {
        let sh = program("sh");
        // Whether glibc is new enough is the machine's affair; the rest is ours.
        let known = mentions(&sh.loader().unwrap(), SWITCH);
        assert_eq!(has_switch(&sh, Some(Mode::Madvise)), known);
        for other in [None, Some(Mode::Always), Some(Mode::Never)] {
            assert!(!has_switch(&sh, other), "{other:?}");
        }
        let privileged = Executable {
            obstacle: Some(Obstacle::Privileged),
            ..sh
        };
        assert!(!has_switch(&privileged, Some(Mode::Madvise)));
    }

    #[test]
    fn a_program_without_a_loader_is_searched_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("static");
        let mut executable = program("sh");
        executable.path = path.clone();
        for (content, expected) in [("\0glibc.malloc.check\0", false), (SWITCH, true)] {
            std::fs::write(&path, content).unwrap();
            assert_eq!(has_switch(&executable, Some(Mode::Madvise)), expected);
        }
    }

    #[test]
    fn a_word_is_found_across_borders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for before in [0, (1 << 20) - 1, (1 << 20) - SWITCH.len(), 5 << 19] {
            std::fs::write(&path, [&vec![b'g'; before], SWITCH.as_bytes()].concat()).unwrap();
            assert!(mentions(&path, SWITCH), "{before}");
        }
        std::fs::write(&path, vec![b'g'; 3 << 20]).unwrap();
        assert!(!mentions(&path, SWITCH));
        assert!(!mentions(folder.path(), SWITCH));
    }

    #[test]
    fn what_the_user_set_stays() {
        assert_eq!(tunables(None), "glibc.malloc.hugetlb=1");
        let theirs = OsStr::new("glibc.malloc.check=0");
        assert_eq!(
            tunables(Some(theirs)),
            "glibc.malloc.check=0:glibc.malloc.hugetlb=1"
        );
    }
}
