// SPDX-License-Identifier: MIT OR Apache-2.0
//! Touched memory by accessed bits: `clear_refs` clears them, `smaps` counts them. Works on every
//! kernel, without privilege for the user's own processes.
//!
//! Limits: a count does not tell how often a page was touched between two samples, nor, for a huge
//! page with its single bit, how much of it.

use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use crate::Root;
use crate::proc::{Mapping, smaps_each};

/// Touched memory of one mapping since the last [`clear`]. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    pub mapping: Mapping,
    pub referenced: u64,
    pub resident: u64,
    /// Resident in huge pages: `referenced` counts such a page in full.
    pub huge: u64,
}

/// Clears the accessed bits of all pages of a process.
///
/// # Errors
/// No such process, or not permitted.
pub fn clear(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "1")
}

/// Returns the mappings of a process with at least one touched page since [`clear`].
///
/// # Errors
/// No such process, or not permitted.
pub fn referenced(pid: u32) -> io::Result<Vec<Touched>> {
    let mut touched = Vec::new();
    smaps_each(&Root::system(), pid, |smap| {
        if smap.referenced != 0 {
            touched.push(Touched {
                referenced: smap.referenced,
                resident: smap.rss,
                huge: smap.huge(),
                mapping: smap.mapping,
            });
        }
    })?;
    Ok(touched)
}

/// Memory that a process touches within an interval, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkingSet {
    pub referenced: u64,
    /// The part in huge pages, which have one bit each and count in full.
    pub referenced_huge: u64,
    pub resident: u64,
    pub huge: u64,
}

/// Clears the bits, waits, and counts. Does not pause the process.
///
/// # Errors
/// No such process (or it ended meanwhile), or not permitted.
pub fn working_set(pid: u32, interval: Duration) -> io::Result<WorkingSet> {
    clear(pid)?;
    thread::sleep(interval);
    let mut set = WorkingSet::default();
    smaps_each(&Root::system(), pid, |smap| {
        set.referenced += smap.referenced;
        set.referenced_huge += smap.referenced.min(smap.huge());
        set.resident += smap.rss;
        set.huge += smap.huge();
    })?;
    Ok(set)
}
