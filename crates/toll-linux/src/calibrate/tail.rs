// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long the slowest page faults of this machine take. The prices of the cost table are
//! medians of CPU time; a program that must answer in time waits for the slowest fault, and for
//! all that happens in it: zeroing, compaction, a host that provides memory, and whatever else
//! ran meanwhile. So these are wall times, of first touches of this process's own memory.

use std::time::{Duration, Instant};

use toll_model::{PAGE, REGION};

use super::faults::is_present;
use crate::memory::{Memory, Pages};

/// Bytes that are mapped and touched at a time.
const SPAN: u64 = 128 << 20;
/// Faults of each size of page: enough for the 99th percentile to be no extreme value.
const FAULTS: usize = 512;

/// The slow end of the times of many faults, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// Faults that were timed.
    pub faults: usize,
    /// 99 of 100 took no longer.
    pub p99: f64,
    pub longest: f64,
}

/// The tails for both sizes of pages; absent where not [`FAULTS`] of them could be had.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tails {
    pub small: Option<Tail>,
    pub huge: Option<Tail>,
}

/// Times first touches of small and of huge pages, in at most `memory` bytes at once. `within`
/// is for both together.
pub fn fault_tails(within: Duration, memory: u64) -> Tails {
    let span = SPAN.min(memory / REGION * REGION);
    let of = |pages| tail(first_touches(pages, span, Instant::now() + within / 2));
    Tails {
        small: of(Pages::Small),
        huge: of(Pages::Huge),
    }
}

/// Wall times of first touches, one in each region: the pages of a small one around it are
/// not touched. Fewer where the time is up, or where a region did not get the pages wanted.
fn first_touches(pages: Pages, span: u64, until: Instant) -> Vec<f64> {
    let mut times = Vec::new();
    while times.len() < FAULTS && Instant::now() < until {
        let reserved = match pages {
            // A kernel without huge pages refuses to be told not to use them.
            Pages::Small => Memory::reserve(span, pages).or_else(|_| Memory::new(span)),
            Pages::Huge => Memory::reserve(span, pages),
        };
        let Ok(memory) = reserved else {
            return times;
        };
        let before = times.len();
        for region in (0..span).step_by(REGION as usize) {
            let began = Instant::now();
            memory.touch(region);
            let took = began.elapsed();
            let whole = is_present(&memory, region + REGION - PAGE);
            if whole == (pages == Pages::Huge) {
                times.push(took.as_nanos() as f64);
            }
        }
        if times.len() == before {
            return times;
        }
    }
    times
}

/// The tail of these times, if there are enough.
fn tail(mut times: Vec<f64>) -> Option<Tail> {
    if times.len() < FAULTS {
        return None;
    }
    times.sort_by(f64::total_cmp);
    // The smallest value that at least 99 % do not exceed.
    let rank = (times.len() * 99).div_ceil(100);
    Some(Tail {
        faults: times.len(),
        p99: *times.get(rank - 1)?,
        longest: *times.last()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_what_one_in_a_hundred_exceeds_and_the_longest() {
        let times: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        let expected = Tail {
            faults: 1000,
            p99: 990.0,
            longest: 1000.0,
        };
        assert_eq!(tail(times), Some(expected));
        assert_eq!(tail(vec![1.0; FAULTS - 1]), None);
    }

    #[test]
    fn small_faults_can_be_timed_anywhere_and_memory_is_no_more_than_allowed() {
        let tails = fault_tails(Duration::from_secs(600), 8 << 20);
        let small = tails.small.unwrap();
        // Four regions at a time.
        assert_eq!(small.faults, FAULTS);
        assert!(0.0 < small.p99 && small.p99 <= small.longest, "{small:?}");
        assert_eq!(fault_tails(Duration::ZERO, 8 << 20), Tails::default());
    }
}
