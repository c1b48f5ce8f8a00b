// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mappings of morsels in pages of the hugetlb pool, which the kernel unmaps in whole pages only. The
//! program knows nothing of that: it unmaps what it mapped, in parts perhaps.
//!
//! Lock-free: an address belongs to whoever mapped it, so two threads never unmap the same one at once.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};

/// More mappings than this stay until the program ends.
const PLACES: usize = 256;

/// A mapping, or what is left of it. All 0: a free place.
struct Mapping {
    /// The first page.
    start: AtomicUsize,
    /// Where the program thinks that it begins and ends.
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

/// Whether there was ever such a mapping.
#[inline(always)]
pub fn any() -> bool {
    ANY.load(Relaxed)
}

/// A mapping was made.
pub fn note(start: usize, end: usize, page: usize) {
    insert(start, start, end, page);
}

fn insert(start: usize, from: usize, end: usize, page: usize) {
    ANY.store(true, Relaxed);
    for mapping in &MAPPINGS {
        let taken = mapping.start.compare_exchange(0, start, Acquire, Relaxed);
        if taken.is_ok() {
            mapping.page.store(page, Relaxed);
            mapping.from.store(from, Relaxed);
            mapping.end.store(end, Release);
            return;
        }
    }
}

/// Which range (start, end) to unmap where the program unmaps `length` bytes at `start`: in such a
/// mapping the pages that go as a whole, elsewhere just that.
pub fn to_unmap(start: usize, length: usize) -> (usize, usize) {
    let end = start.saturating_add(length);
    let inside = |it: &&Mapping| (it.from.load(Relaxed)..it.end.load(Acquire)).contains(&start);
    match MAPPINGS.iter().find(inside) {
        Some(mapping) => mapping.cut(start, end),
        None => (start, end),
    }
}

impl Mapping {
    /// Takes a range out that begins inside, and says what to unmap for it: the pages that nobody
    /// wants any more.
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
            // A hole within a page stays.
            (false, false) if last > first => {
                self.end.store(from, Release);
                insert(last, to, end, page);
            }
            (false, false) => {}
        }
        match to >= end {
            true => (first, whole(end).max(to)),
            false => (first, last),
        }
    }
}
