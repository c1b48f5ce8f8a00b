// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warms memory up before every run, of all arms alike.
//!
//! A virtual machine may give memory that is free for a while back to its host. The
//! first touch of such a block then costs a hundred times what one of a warm block does, and which
//! run pays depends on what ran before it: noise that drowns gains. So about as much
//! memory as the program uses is touched and freed just before it starts.

use std::ptr;

use toll_linux::calibrate::available_memory;
use toll_model::{PAGE, REGION};

/// Touches and frees memory before runs. Never fails one: what cannot be had is not warmed.
#[derive(Debug)]
pub struct Warmer {
    on: bool,
    /// Most resident memory of any run so far, bytes.
    largest: u64,
    /// Most that was warmed at once, bytes.
    warmed: u64,
}

impl Warmer {
    /// One that warms only if it is `on`.
    pub fn new(on: bool) -> Warmer {
        Warmer {
            on,
            largest: 0,
            warmed: 0,
        }
    }

    /// Takes note of the memory of a run, in bytes: the next ones get as much and some more.
    pub fn saw(&mut self, max_rss: u64) {
        self.largest = self.largest.max(max_rss);
    }

    /// Warms what the next run is expected to use; ends early as soon as `stop` says so.
    pub fn warm(&mut self, stop: impl Fn() -> bool) {
        if self.on && self.largest > 0 {
            let bytes = wanted(self.largest, available_memory());
            self.warmed = self.warmed.max(touch(bytes, stop));
        }
    }

    /// The most that was warmed before a run, bytes.
    pub fn warmed(&self) -> u64 {
        self.warmed
    }
}

/// A quarter more than the largest run had, in whole regions, and at most half of what is there.
fn wanted(largest: u64, available: u64) -> u64 {
    let ample = largest.saturating_add(largest / 4).div_ceil(REGION);
    ample.min(available / 2 / REGION) * REGION
}

/// Maps `bytes`, asks for huge pages (and is content with small ones), touches every
/// small page and unmaps all. Returns the bytes that were touched.
fn touch(bytes: u64, stop: impl Fn() -> bool) -> u64 {
    // One region more than is touched, so that what is touched can begin on a boundary.
    let Some(length) = bytes
        .checked_add(REGION)
        .and_then(|length| usize::try_from(length).ok())
    else {
        return 0;
    };
    // SAFETY: a fresh private mapping at an address of the kernel's choice.
    let mapping = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if mapping == libc::MAP_FAILED {
        return 0;
    }
    // SAFETY: advice on our own mapping, which never changes its content; it may be refused.
    unsafe { libc::madvise(mapping, length, libc::MADV_HUGEPAGE) };
    let mapping = mapping.cast::<u8>();
    let skip = mapping.align_offset(REGION as usize) as u64;
    let mut touched = 0;
    while touched < bytes && !stop() {
        for page in (0..REGION).step_by(PAGE as usize) {
            // SAFETY: `skip` is less than a region, so this is inside our own writable mapping.
            unsafe {
                mapping
                    .add((skip + touched + page) as usize)
                    .write_volatile(1)
            };
        }
        touched += REGION;
    }
    // SAFETY: our own mapping, as it was made; nothing refers to it any more.
    unsafe { libc::munmap(mapping.cast(), length) };
    touched
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn as_much_as_the_largest_run_and_a_quarter_in_whole_regions() {
        assert_eq!(wanted(80 * MIB, 1 << 40), 100 * MIB);
        assert_eq!(wanted(MIB, 1 << 40), REGION);
        assert_eq!(wanted(u64::MAX, u64::MAX), u64::MAX / 2 / REGION * REGION);
    }

    #[test]
    fn at_most_half_of_what_is_available() {
        assert_eq!(wanted(1 << 30, 1 << 30), 512 * MIB);
        assert_eq!(wanted(1 << 30, 3 * MIB), 0);
    }

    #[test]
    fn nothing_before_the_first_run_and_then_what_was_seen() {
        let mut warmer = Warmer::new(true);
        warmer.warm(|| false);
        assert_eq!(warmer.warmed(), 0);
        for rss in [8 * MIB, 3 * MIB] {
            warmer.saw(rss);
            warmer.warm(|| false);
        }
        assert_eq!(warmer.warmed(), 10 * MIB);
    }

    #[test]
    fn cold_warms_nothing() {
        let mut warmer = Warmer::new(false);
        warmer.saw(8 * MIB);
        warmer.warm(|| false);
        assert_eq!(warmer.warmed(), 0);
    }

    #[test]
    fn it_touches_what_it_says_and_ends_when_it_is_told() {
        // SAFETY: getrusage writes a struct for which zero is a value.
        let faults = || unsafe {
            let mut usage = std::mem::zeroed::<libc::rusage>();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage.ru_minflt
        };
        let before = faults();
        assert_eq!(touch(16 * MIB, || false), 16 * MIB);
        // One for each region where they are huge.
        assert!(faults() - before >= 8);
        assert_eq!(touch(16 * MIB, || true), 0);
    }

    #[test]
    fn an_impossible_size_is_skipped() {
        assert_eq!(touch(u64::MAX / REGION * REGION, || false), 0);
        assert_eq!(touch(1 << 60, || false), 0);
    }
}
