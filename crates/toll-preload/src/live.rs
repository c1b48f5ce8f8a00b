// SPDX-License-Identifier: MIT OR Apache-2.0
//! Table of live large blocks: the information that `free`, `realloc` and `munmap` need. A block
//! with memory that returned to the allocator but not to the system stays as a *dormant* entry
//! while its mappings are split: the next block at that address is not charged for existing splits.
//!
//! Lock-free: an address belongs to the thread that allocated it, so two threads never insert or
//! remove the same one concurrently.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::*};

use crate::budget::Charge;
use crate::hash::mix;

const SLOTS: usize = 1 << 16;
/// Maximum distance of an entry from the slot of its hash.
const WINDOW: usize = 32;
const FILTER: usize = 4096;

/// A large block.
#[derive(Clone, Copy)]
pub struct Block {
    pub address: usize,
    pub length: usize,
    /// The rule that it matched, or `ANY`.
    pub rule: u32,
    /// Charge for its splits.
    pub charge: Charge,
}

struct Slot {
    /// 0: free.
    address: AtomicUsize,
    length: AtomicUsize,
    rule: AtomicU32,
    /// `Charge`, packed.
    charge: AtomicU32,
    /// 1: its block was freed, but its splits remain.
    dormant: AtomicU32,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        address: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        rule: AtomicU32::new(0),
        charge: AtomicU32::new(0),
        dormant: AtomicU32::new(0),
    }
}; SLOTS];

/// Entries of the table.
static ENTRIES: AtomicUsize = AtomicUsize::new(0);
/// Number of entries with each hash; saturates at 255.
static PRESENT: [AtomicU8; FILTER] = [const { AtomicU8::new(0) }; FILTER];

fn hash(address: usize) -> usize {
    mix(address as u64 >> 4) as usize
}

/// Whether `address` may be that of a large block: the check in each `free`.
#[inline(always)]
pub fn may_have(address: usize) -> bool {
    ENTRIES.load(Relaxed) != 0 && is_present(address)
}

#[inline(always)]
fn is_present(address: usize) -> bool {
    // SAFETY: the index is below FILTER, a power of two.
    unsafe { PRESENT.get_unchecked(hash(address) % FILTER) }.load(Relaxed) != 0
}

fn note(address: usize, entry: bool) {
    let Some(count) = PRESENT.get(hash(address) % FILTER) else {
        return;
    };
    let step = |count: u8| match (count, entry) {
        (u8::MAX, _) => None,
        (_, true) => Some(count + 1),
        (_, false) => count.checked_sub(1),
    };
    let _ = count.fetch_update(Relaxed, Relaxed, step);
    if entry {
        ENTRIES.fetch_add(1, Relaxed);
    } else {
        ENTRIES.fetch_sub(1, Relaxed);
    }
}

fn window(address: usize) -> impl Iterator<Item = &'static Slot> {
    let start = hash(address) / FILTER;
    (0..WINDOW).filter_map(move |step| TABLE.get(start.wrapping_add(step) % SLOTS))
}

fn find(address: usize) -> Option<&'static Slot> {
    if address == 0 {
        return None; // the value of free slots
    }
    window(address).find(|slot| slot.address.load(Acquire) == address)
}

impl Slot {
    fn block(&self) -> Block {
        Block {
            address: self.address.load(Relaxed),
            length: self.length.load(Relaxed),
            rule: self.rule.load(Relaxed),
            charge: Charge::unpack(self.charge.load(Relaxed)),
        }
    }

    fn clear(&self, address: usize) {
        self.address.store(0, Release);
        note(address, false);
    }
}

/// Adds a block; existing charges for splits at its address are added to its charge. Does nothing
/// if the table is full there.
pub fn insert(block: Block) {
    let slot = find(block.address).or_else(|| claim(block.address));
    if let Some(slot) = slot {
        slot.length.store(block.length, Relaxed);
        slot.rule.store(block.rule, Relaxed);
        slot.charge.store(block.charge.pack(), Relaxed);
        slot.dormant.store(0, Release);
    }
}

fn claim(address: usize) -> Option<&'static Slot> {
    let free = |slot: &&Slot| {
        let claimed = slot.address.compare_exchange(0, address, AcqRel, Relaxed);
        claimed.is_ok()
    };
    let slot = window(address).find(free)?;
    note(address, true);
    Some(slot)
}

/// Returns the live block at `address`.
pub fn get(address: usize) -> Option<Block> {
    let slot = find(address)?;
    (slot.dormant.load(Acquire) == 0).then(|| slot.block())
}

/// Returns the charge for splits at `address`, of a live or dormant block.
pub fn charge(address: usize) -> Charge {
    find(address).map_or(Charge::NOTHING, |slot| slot.block().charge)
}

/// Removes the block at `address`. Unless its memory returned to the system (`unmapped`), its
/// splits remain.
pub fn remove(address: usize, unmapped: bool) {
    let Some(slot) = find(address) else {
        return;
    };
    if unmapped || slot.block().charge == Charge::NOTHING {
        slot.clear(address);
    } else {
        slot.dormant.store(1, Release);
    }
}
