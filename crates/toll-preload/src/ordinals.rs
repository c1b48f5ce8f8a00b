// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the events of each (call site, length class, thread).

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use toll_wire::ANY;

use crate::hash::mix;

const SLOTS: usize = 1 << 14;
/// Slots inspected before a new key is dropped.
const WINDOW: usize = 32;

struct Counter {
    /// Hash of site, class and thread; 0: free.
    key: AtomicU64,
    count: AtomicU32,
}

static COUNTERS: [Counter; SLOTS] = [const {
    Counter {
        key: AtomicU64::new(0),
        count: AtomicU32::new(0),
    }
}; SLOTS];

/// Returns the number of earlier events with this key and counts this one; `ANY` if the table is
/// full.
pub fn next(call_site: u64, class: u8, thread: u32) -> u32 {
    let key = mix(mix(call_site ^ u64::from(class)) ^ u64::from(thread)).max(1);
    let start = key as usize;
    for slot in 0..WINDOW {
        let Some(counter) = COUNTERS.get(start.wrapping_add(slot) % SLOTS) else {
            break;
        };
        let found = match counter.key.compare_exchange(0, key, Relaxed, Relaxed) {
            Ok(_) => key,
            Err(other) => other,
        };
        if found == key {
            return counter.count.fetch_add(1, Relaxed);
        }
    }
    ANY
}
