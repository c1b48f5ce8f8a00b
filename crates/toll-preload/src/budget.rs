// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits the number of mapping splits. A process may have `vm.max_map_count` mappings; beyond that
//! the *program's* next mmap fails. There are two budgets:
//!
//! - splits inside a mapping: at most 1,000 and at most 5 % of what was left at start;
//! - ends of ranges that coincide with a fresh mapping's own ends: these split nothing, but may
//!   keep neighbours from merging: at most 25 % of what was left.
//!
//! Both are charged before the advice and refunded when the memory is unmapped.

use core::sync::atomic::{AtomicU32, Ordering::*};

use crate::os::File;

static SPLITS_LEFT: AtomicU32 = AtomicU32::new(0);
static ENDS_LEFT: AtomicU32 = AtomicU32::new(0);

/// Charge of one block's advice on the budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    pub splits: u16,
    pub ends: u16,
}

impl Charge {
    pub const NOTHING: Charge = Charge { splits: 0, ends: 0 };

    pub fn pack(self) -> u32 {
        u32::from(self.splits) | u32::from(self.ends) << 16
    }

    pub fn unpack(packed: u32) -> Charge {
        Charge {
            splits: packed as u16,
            ends: (packed >> 16) as u16,
        }
    }

    pub fn plus(self, more: Charge) -> Charge {
        Charge {
            splits: self.splits.saturating_add(more.splits),
            ends: self.ends.saturating_add(more.ends),
        }
    }

    /// Returns the part of `self` that `paid` does not cover.
    pub fn beyond(self, paid: Charge) -> Charge {
        Charge {
            splits: self.splits.saturating_sub(paid.splits),
            ends: self.ends.saturating_sub(paid.ends),
        }
    }
}

/// Reads the limit of mappings. The current number is counted only if it matters: reading
/// /proc/self/maps takes longer than the rest of the start. A program starts with about five per
/// module; a thousand modules have fewer than `AT_START`.
pub fn start() {
    /// The kernel's `DEFAULT_MAX_MAP_COUNT`.
    const DEFAULT: u32 = 65_530;
    const AT_START: u32 = 5_530;
    let most = File::open(c"/proc/sys/vm/max_map_count", libc::O_RDONLY)
        .map(|file| number(&file))
        .filter(|&most| most > 0)
        .unwrap_or(DEFAULT);
    let mapped = match most >= DEFAULT {
        true => AT_START,
        false => File::open(c"/proc/self/maps", libc::O_RDONLY).map_or(0, |file| lines(&file)),
    };
    let left = most.saturating_sub(mapped);
    SPLITS_LEFT.store((left / 20).min(1000), Relaxed);
    ENDS_LEFT.store(left / 4, Relaxed);
}

fn number(file: &File) -> u32 {
    let mut text = [0; 32];
    let got = file.read(&mut text);
    let digits = text
        .iter()
        .take(got)
        .take_while(|byte| byte.is_ascii_digit());
    digits.fold(0u32, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u32::from(digit - b'0'))
    })
}

fn lines(file: &File) -> u32 {
    let mut text = [0; 4096];
    let mut count = 0;
    loop {
        let got = file.read(&mut text);
        if got == 0 {
            return count;
        }
        let ends = text.iter().take(got).filter(|&&byte| byte == b'\n');
        count += ends.count() as u32;
    }
}

/// Takes `charge` from the budgets; false, without a change, if it exceeds them.
pub fn take(charge: Charge) -> bool {
    if !take_from(&SPLITS_LEFT, charge.splits) {
        return false;
    }
    if !take_from(&ENDS_LEFT, charge.ends) {
        SPLITS_LEFT.fetch_add(u32::from(charge.splits), Relaxed);
        return false;
    }
    true
}

fn take_from(left: &AtomicU32, amount: u16) -> bool {
    if amount == 0 {
        return true;
    }
    let take = |left: u32| left.checked_sub(u32::from(amount));
    left.fetch_update(Relaxed, Relaxed, take).is_ok()
}

/// Refunds the charge of unmapped memory.
pub fn give_back(charge: Charge) {
    SPLITS_LEFT.fetch_add(u32::from(charge.splits), Relaxed);
    ENDS_LEFT.fetch_add(u32::from(charge.ends), Relaxed);
}
