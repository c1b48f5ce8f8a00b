// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mappings of morsels in pages of the hugetlb pool, which the kernel unmaps in whole pages only. The
//! program knows nothing of that: it unmaps what it mapped, in parts perhaps.
//!
//! Lock-free: an address belongs to whoever mapped it, so two threads never unmap the same one at once.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// More mappings than this stay until the program ends.
const PLACES: usize = 256;

/// Begins with a whole page, and ends where the program thinks that it does. All 0: a free place.
struct Mapping {
    start: AtomicUsize,
    end: AtomicUsize,
    page: AtomicUsize,
}

static MAPPINGS: [Mapping; PLACES] = [const {
    Mapping {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        page: AtomicUsize::new(0),
    }
}; PLACES];

static ANY: AtomicBool = AtomicBool::new(false);

/// Whether there was ever such a mapping.
#[inline(always)]
pub fn any() -> bool {
    ANY.load(Relaxed)
}

/// A mapping was made.
pub fn note(start: usize, end: usize, page: usize) {
    ANY.store(true, Relaxed);
    for mapping in &MAPPINGS {
        let taken = mapping.start.compare_exchange(0, start, Acquire, Relaxed);
        if taken.is_ok() {
            mapping.page.store(page, Relaxed);
            mapping.end.store(end, Release);
            return;
        }
    }
}

/// Which range (start, end) to unmap where the program unmaps `length` bytes at `start`: in such a
/// mapping the pages that go as a whole, elsewhere just that.
pub fn to_unmap(start: usize, length: usize) -> (usize, usize) {
    let end = start.saturating_add(length);
    let inside = |it: &&Mapping| (it.start.load(Relaxed)..it.end.load(Acquire)).contains(&start);
    match MAPPINGS.iter().find(inside) {
        Some(mapping) => mapping.cut(start, end),
        None => (start, end),
    }
}

impl Mapping {
    /// Takes a range out that begins inside, and says what to unmap for it.
    fn cut(&self, from: usize, to: usize) -> (usize, usize) {
        let (start, end) = (self.start.load(Relaxed), self.end.load(Relaxed));
        let page = self.page.load(Relaxed);
        let whole = |address: usize| address.div_ceil(page) * page;
        if to >= end {
            if from == start {
                self.end.store(0, Relaxed);
                self.start.store(0, Release);
            } else {
                self.end.store(from, Release);
            }
            return (whole(from), whole(end).max(to));
        }
        let (first, last) = (whole(from), to / page * page);
        if last > first {
            if from == start {
                self.start.store(last, Relaxed);
            } else {
                self.end.store(from, Release);
                note(last, end, page);
            }
        }
        (first, last)
    }
}
