// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small adjacent mappings that fill 2 MiB regions together: the arenas of an interpreter or an
//! allocator. None of them is huge at its first touch, because its region is not completely mapped
//! then. When the last missing mapping of a region is made, the region is collapsed.
//!
//! A neighbour is searched where a mapping of the same length would start: arenas of one allocator
//! have equal lengths.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use toll_wire::{PAGE, REGION, advice};

use crate::budget::Charge;
use crate::live::{self, Block};
use crate::os;
use crate::plan::Plan;
use crate::regions::Range;

/// MADV_COLLAPSE creates huge pages even if the system's mode is `never`.
static MAY_COLLAPSE: AtomicBool = AtomicBool::new(false);

/// `allowed`: whether the system permits huge pages.
pub fn start(allowed: bool) {
    MAY_COLLAPSE.store(allowed, Relaxed);
}

/// Whether the rule is for blocks that fill regions together.
pub fn is_wanted(plan: &Plan, rule: u32) -> bool {
    plan.intervals(rule, advice::TOGETHER).next().is_some()
}

/// Whether a block has no region of its own.
pub fn is_small(pages: Range) -> bool {
    pages.start.next_multiple_of(REGION).saturating_add(REGION) > pages.end
}

/// Collapses the regions that `block` fills with its neighbours. The block is not in the table of
/// live blocks yet.
pub fn collapse(plan: &Plan, block: Range) {
    if !MAY_COLLAPSE.load(Relaxed) {
        return;
    }
    let pages = block.pages();
    let mut region = pages.start & !(REGION - 1);
    while region < pages.end {
        let end = region.saturating_add(REGION);
        if reaches_down(plan, block, region) && reaches_up(plan, block, end) {
            os::advise(region as usize, end as usize, libc::MADV_COLLAPSE);
        }
        region = end;
    }
}

/// Whether there are neighbours from `block` down to `to`.
fn reaches_down(plan: &Plan, block: Range, to: u64) -> bool {
    let pages = block.pages();
    let length = pages.end - pages.start;
    let mut start = block.start;
    while start > to.saturating_add(block.start - pages.start) {
        let Some(below) = start.checked_sub(length) else {
            return false;
        };
        match neighbour(plan, below) {
            Some(pages) if pages.end == start & !(PAGE - 1) => start = below,
            _ => return false,
        }
    }
    true
}

/// Whether there are neighbours from `block` up to `to`.
fn reaches_up(plan: &Plan, block: Range, to: u64) -> bool {
    let pages = block.pages();
    let mut end = pages.end;
    while end < to {
        match neighbour(plan, end.saturating_add(block.start - pages.start)) {
            Some(next) => end = next.end,
            None => return false,
        }
    }
    true
}

/// Returns the pages of the advised block that starts at `address`.
fn neighbour(plan: &Plan, address: u64) -> Option<Range> {
    let advised = |block: &Block| is_wanted(plan, block.rule) && block.charge != Charge::NOTHING;
    let block = live::get(address as usize).filter(advised)?;
    let range = Range {
        start: address,
        end: address.saturating_add(block.length as u64),
    };
    Some(range.pages()).filter(|pages| pages.end > pages.start)
}
