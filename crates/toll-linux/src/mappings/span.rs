// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory khugepaged has to look at on this machine. It walks all regions of all processes
//! in turn, whether they have pages or not.

use std::time::{Duration, Instant};

use toll_model::eligibility::{Backing, Mode, regions};

use crate::Root;
use crate::proc::{self, Mapping, maps, smaps_each};

/// Processes with more memory than this are left out where smaps has to be read: it walks the page
/// tables.
const LARGEST: u64 = 4 << 30;

/// Memory in regions that khugepaged may collapse, of other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    pub bytes: u64,
    /// Processes that were read, and those that could not be, or not in time.
    pub read: usize,
    pub unread: usize,
}

/// Reads all processes but `except` for at most `time`, the smallest first.
pub fn span(root: &Root, except: u32, mode: Mode, time: Duration) -> Span {
    let begun = Instant::now();
    let mut others: Vec<(u64, u32)> = proc::processes(root)
        .into_iter()
        .filter(|pid| *pid != except)
        .filter_map(|pid| Some((proc::status(root, pid).ok()?.rss?, pid)))
        .collect();
    others.sort_unstable();
    let mut span = Span::default();
    for (rss, pid) in others {
        let in_time = begun.elapsed() < time && (mode == Mode::Always || rss <= LARGEST);
        match in_time.then(|| of(root, pid, mode)).flatten() {
            Some(bytes) => {
                span.read += 1;
                span.bytes += bytes;
            }
            None => span.unread += 1,
        }
    }
    span
}

/// The bytes of one process; `None` if it cannot be read.
fn of(root: &Root, pid: u32, mode: Mode) -> Option<u64> {
    let mut bytes = 0;
    match mode {
        Mode::Missing | Mode::Never => {}
        Mode::Always => bytes = maps(root, pid).ok()?.iter().map(in_regions).sum(),
        Mode::Madvise => smaps_each(root, pid, |smap| {
            if smap.advised_huge {
                bytes += in_regions(&smap.mapping);
            }
        })
        .ok()?,
    }
    Some(bytes)
}

fn in_regions(mapping: &Mapping) -> u64 {
    if !mapping.is_private_anonymous() {
        return 0;
    }
    let (first, last) = regions(mapping.start, mapping.end, 0, Backing::Anonymous);
    last - first
}
