// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mappings of morsels in pages of the hugetlb pool, which the kernel unmaps only in whole pages.
//! The program does not know the page size: it unmaps what it mapped, possibly in parts, or
//! together with adjacent mappings.
//!
//! Lock-free: an address belongs to the thread that mapped it, so two threads never unmap the same
//! one concurrently.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// Maximum number of such mappings; further ones are not served.
const PLACES: usize = 256;

/// A mapping, or the rest of it. All 0: a free slot.
struct Mapping {
    /// The first page.
    start: AtomicUsize,
    /// Start and end of the mapping as requested by the program.
    from: AtomicUsize,
    end: AtomicUsize,
    page: AtomicUsize,
}

static MAPPINGS: [Mapping; PLACES] = [const {
    Mapping {
        start: AtomicUsize::new(0),
        from: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        page: AtomicUsize::new(0),
    }
}; PLACES];

static ANY: AtomicBool = AtomicBool::new(false);

/// Whether such a mapping has ever existed.
#[inline(always)]
pub fn any() -> bool {
    ANY.load(Relaxed)
}

/// Adds a mapping; false if the table is full.
pub fn note(start: usize, end: usize, page: usize) -> bool {
    insert(start, start, end, page)
}

fn insert(start: usize, from: usize, end: usize, page: usize) -> bool {
    ANY.store(true, Relaxed);
    for mapping in &MAPPINGS {
        let taken = mapping.start.compare_exchange(0, start, Acquire, Relaxed);
        if taken.is_ok() {
            mapping.page.store(page, Relaxed);
            mapping.from.store(from, Relaxed);
            mapping.end.store(end, Release);
            return true;
        }
    }
    false
}

/// Performs the program's unmap of `start..end` by calls of `unmap` (start, end): for such mappings
/// the pages that are no longer used, elsewhere the range itself. Stops at the first result that is
/// not 0.
pub fn unmap<F: FnMut(usize, usize) -> c_int>(start: usize, end: usize, mut unmap: F) -> c_int {
    let mut at = start;
    while at < end {
        let Some((mapping, pages)) = first_within(at, end) else {
            return unmap(at, end);
        };
        let (from, to) = mapping.part(at, end);
        let cut = if from < to {
            mapping.cut(from, to)
        } else {
            (0, 0)
        };
        for (from, to) in [(at, pages.0), cut] {
            let result = if from < to { unmap(from, to) } else { 0 };
            if result != 0 {
                return result;
            }
        }
        at = pages.1;
    }
    0
}

/// Returns the first mapping with a page in a range, and the bounds of its pages.
fn first_within(start: usize, end: usize) -> Option<(&'static Mapping, (usize, usize))> {
    MAPPINGS
        .iter()
        .filter_map(|mapping| Some((mapping, mapping.pages()?)))
        .filter(|(_, (from, to))| *from < end && start < *to)
        .min_by_key(|(_, (from, _))| *from)
}

impl Mapping {
    /// Returns the bounds of its pages; `None` for a free slot.
    fn pages(&self) -> Option<(usize, usize)> {
        let end = self.end.load(Acquire);
        let page = self.page.load(Relaxed);
        let start = self.start.load(Relaxed);
        let end = end.div_ceil(page.max(1)).checked_mul(page)?;
        (start != 0 && start < end).then_some((start, end))
    }

    /// Returns the part of a range that the program still uses.
    fn part(&self, start: usize, end: usize) -> (usize, usize) {
        let to = end.min(self.end.load(Acquire));
        (start.max(self.from.load(Relaxed)), to)
    }

    /// Removes a range that lies inside, and returns what to unmap: the pages that are no longer
    /// used.
    fn cut(&self, from: usize, to: usize) -> (usize, usize) {
        let (start, end) = (self.start.load(Relaxed), self.end.load(Relaxed));
        let page = self.page.load(Relaxed);
        let whole = |address: usize| address.div_ceil(page) * page;
        let is_front = from == self.from.load(Relaxed);
        let first = if is_front { start } else { whole(from) };
        let last = to / page * page;
        match (is_front, to >= end) {
            (true, true) => {
                self.end.store(0, Relaxed);
                self.start.store(0, Release);
            }
            (true, false) => {
                self.from.store(to, Relaxed);
                self.start.store(last, Relaxed);
            }
            (false, true) => self.end.store(from, Release),
            // A hole within a page stays mapped.
            (false, false) if last > first => {
                self.end.store(from, Release);
                insert(last, to, end, page);
            }
            (false, false) => {}
        }
        match to >= end {
            true => (first, whole(end)),
            false => (first, last),
        }
    }
}
