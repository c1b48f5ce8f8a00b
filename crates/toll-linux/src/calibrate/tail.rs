// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tail latency of page faults on this machine. The cost table has medians of CPU time; a program
//! with latency goals waits for the slowest fault and everything that happens in it: zeroing,
//! compaction, a host that provides memory, and preemption. These are therefore wall times of first
//! touches of this process's own memory.

use std::time::{Duration, Instant};

use toll_model::{PAGE, REGION};

use super::faults::is_present;
use crate::memory::{Memory, Pages};

/// Bytes that are mapped and touched at a time.
const SPAN: u64 = 128 << 20;
/// Faults for each page size: enough for a stable 99th percentile.
const FAULTS: usize = 512;

/// Tail of the times of many faults, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// Number of timed faults.
    pub faults: usize,
    /// 99th percentile.
    pub p99: f64,
    pub longest: f64,
}

/// Tails for both page sizes; absent if fewer than [`FAULTS`] faults were possible.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tails {
    pub small: Option<Tail>,
    pub huge: Option<Tail>,
}

/// Times first touches of 4 KiB and of huge pages, with at most `memory` bytes at once. `within` is
/// the limit for both together.
pub fn fault_tails(within: Duration, memory: u64) -> Tails {
    let span = SPAN.min(memory / REGION * REGION);
    let of = |pages| tail(first_touches(pages, span, Instant::now() + within / 2));
    Tails {
        small: of(Pages::Small),
        huge: of(Pages::Huge),
    }
}

/// Measures wall times of first touches, one per region: the other 4 KiB pages of a region are not
/// touched. Returns fewer if time runs out, or if a region did not get the requested page size.
fn first_touches(pages: Pages, span: u64, until: Instant) -> Vec<f64> {
    let mut times = Vec::new();
    while times.len() < FAULTS && Instant::now() < until {
        let reserved = match pages {
            // A kernel without huge pages rejects MADV_NOHUGEPAGE.
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

/// Returns the tail of these times, if there are enough.
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
mod tests;
