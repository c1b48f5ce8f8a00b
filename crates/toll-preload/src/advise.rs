// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice for the ranges of a block, within the map budget.

use core::ffi::c_int;

use toll_wire::REGION;
use toll_wire::advice::{HUGE, NO_HUGE, TOGETHER};

use crate::budget::{self, Charge};
use crate::neighbours;
use crate::os;
use crate::plan::Plan;
use crate::regions::{self, Range};

/// A block to advise.
pub struct Target {
    pub range: Range,
    /// Whether it is a mapping of its own: advice that reaches its ends splits nothing there.
    pub own_mapping: bool,
    /// Only ranges beyond this address are relevant (the part that a block grew by; the rest was
    /// advised before).
    pub beyond: u64,
    /// Splits of this block that were charged before.
    pub paid: Charge,
}

/// Result of the advice.
#[derive(Clone, Copy)]
pub struct Advised {
    pub bytes: u64,
    /// Total charge of the block, including earlier charges.
    pub charge: Charge,
}

/// Advises the planned ranges of a block.
pub fn planned(plan: &Plan, rule: u32, target: &Target) -> Advised {
    let mut advisor = Advisor::new(target);
    let advices = [
        (HUGE, libc::MADV_HUGEPAGE),
        (TOGETHER, libc::MADV_HUGEPAGE),
        (NO_HUGE, libc::MADV_NOHUGEPAGE),
    ];
    for (code, advice) in advices {
        let intervals = plan.intervals(rule, code);
        regions::planned(target.range, intervals, |range| {
            advisor.advise(range, advice)
        });
    }
    let pages = target.range.pages();
    if target.own_mapping && neighbours::is_wanted(plan, rule) && neighbours::is_small(pages) {
        let before = advisor.done.bytes;
        advisor.advise(pages, libc::MADV_HUGEPAGE);
        if advisor.done.bytes > before {
            neighbours::collapse(plan, target.range);
        }
    }
    advisor.done
}

/// Reverts the advice on a block that is freed and has memory that stays mapped for other blocks.
/// No advice restores the default; MADV_NOHUGEPAGE is equivalent if memory without advice is not
/// made huge.
pub fn withdraw(plan: &Plan, rule: u32, target: &Target) {
    if plan.advises_all() || !plan.addresses().is_empty() {
        return;
    }
    let mut needed = Charge::NOTHING;
    for code in [HUGE, TOGETHER, NO_HUGE] {
        regions::planned(target.range, plan.intervals(rule, code), |range| {
            needed = needed.plus(cost(target, range));
        });
    }
    // Ranges that exceeded the budget must not be split now.
    if needed.beyond(target.paid) != Charge::NOTHING {
        return;
    }
    for code in [HUGE, TOGETHER] {
        regions::planned(target.range, plan.intervals(rule, code), |range: Range| {
            os::advise(
                range.start as usize,
                range.end as usize,
                libc::MADV_NOHUGEPAGE,
            );
        });
    }
}

/// Returns the maximum charge of advice for a range of a block.
fn cost(target: &Target, range: Range) -> Charge {
    let pages = target.range.pages();
    let mut cost = Charge::NOTHING;
    for at_end in [range.start == pages.start, range.end == pages.end] {
        if at_end && target.own_mapping {
            cost.ends += 1;
        } else {
            cost.splits += 1;
        }
    }
    cost
}

/// Advises a whole block (the variant "all").
pub fn all(target: &Target) -> Advised {
    let mut advisor = Advisor::new(target);
    let whole = core::iter::once((0, u64::MAX));
    regions::planned(target.range, whole, |range| {
        advisor.advise(range, libc::MADV_HUGEPAGE)
    });
    advisor.done
}

/// Advises the fixed address ranges that lie in a block.
pub fn addresses(plan: &Plan, target: &Target) -> Advised {
    let mut advisor = Advisor::new(target);
    for range in overlaps(plan, target.range.pages()) {
        advisor.advise(range, libc::MADV_HUGEPAGE);
    }
    advisor.done
}

/// Returns the parts of `block` that the plan names by address.
fn overlaps(plan: &Plan, block: Range) -> impl Iterator<Item = Range> {
    let ranges = plan.addresses();
    let first = ranges.partition_point(|range| range.end <= block.start);
    let ranges = ranges.get(first..).unwrap_or_default().iter();
    ranges
        .map(move |range| Range {
            start: range.start.max(block.start),
            end: range.end.min(block.end),
        })
        .take_while(|range| range.start < range.end)
}

/// Calls `piece` with the parts that advice may have made of a block, in order and without gaps;
/// adjacent parts may still be one mapping.
pub fn pieces<F: FnMut(Range)>(plan: &Plan, rule: u32, block: Range, mut piece: F) {
    let pages = block.pages();
    let mut done = pages.start;
    let mut cut = |at: u64| {
        if at > done {
            piece(Range {
                start: done,
                end: at,
            });
            done = at;
        }
    };
    let mut ends = |range: Range| {
        cut(range.start);
        cut(range.end);
    };
    if plan.addresses().is_empty() {
        // Without losers: with them, the kernel's refusal to move stays in effect.
        for code in [HUGE, TOGETHER] {
            regions::planned(block, plan.intervals(rule, code), &mut ends);
        }
    } else {
        overlaps(plan, pages).for_each(&mut ends);
    }
    cut(pages.end);
}

struct Advisor<'a> {
    target: &'a Target,
    /// The charge of the ranges so far.
    needed: Charge,
    done: Advised,
}

impl Advisor<'_> {
    fn new(target: &Target) -> Advisor<'_> {
        Advisor {
            target,
            needed: Charge::NOTHING,
            done: Advised {
                bytes: 0,
                charge: target.paid,
            },
        }
    }

    fn advise(&mut self, range: Range, advice: c_int) {
        if range.end <= self.target.beyond {
            return;
        }
        let done = self.pay(range) && os::advise(range.start as usize, range.end as usize, advice);
        if done && advice == libc::MADV_HUGEPAGE {
            self.done.bytes += range.end - range.start;
        }
    }

    /// Charges the two ends of a range; false if the budget is used up.
    fn pay(&mut self, range: Range) -> bool {
        let needed = self.needed.plus(cost(self.target, range));
        let more = needed.beyond(self.done.charge);
        if !budget::take(more) {
            return false;
        }
        self.needed = needed;
        self.done.charge = self.done.charge.plus(more);
        true
    }
}

/// A part of a mapping was removed, and could not be restored.
pub struct Hole;

/// How to replace memory by another mapping.
#[derive(Clone, Copy)]
pub struct Exchange {
    pub protection: c_int,
    /// What the program requested.
    pub flags: c_int,
}

/// Maps pages of the hugetlb pool over the fixed ranges of a fresh mapping; if the pool is empty,
/// plain memory with advice. Returns the bytes that are huge or advised.
///
/// # Errors
/// [`Hole`]: the mapping can no longer be used.
pub fn hugetlb(plan: &Plan, target: &Target, exchange: Exchange) -> Result<Advised, Hole> {
    let mut advisor = Advisor::new(target);
    for range in overlaps(plan, target.range) {
        let whole = Range {
            start: range.start.next_multiple_of(REGION),
            end: range.end & !(REGION - 1),
        };
        if whole.start < whole.end && advisor.pay(whole) {
            if back(whole, exchange)? {
                advisor.done.bytes += whole.end - whole.start;
            } else {
                back_one_by_one(&mut advisor, whole, exchange)?;
            }
        }
    }
    Ok(advisor.done)
}

fn back_one_by_one(advisor: &mut Advisor, range: Range, exchange: Exchange) -> Result<(), Hole> {
    let mut start = range.start;
    while start < range.end {
        let region = Range {
            start,
            end: start + REGION,
        };
        if advisor.pay(region) && back(region, exchange)? {
            advisor.done.bytes += REGION;
        } else {
            advisor.advise(region, libc::MADV_HUGEPAGE);
        }
        start = region.end;
    }
    Ok(())
}

/// Maps hugetlb pages over a range of untouched memory; returns whether it succeeded. The kernel
/// may remove the old mapping before it fails: it is then restored.
fn back(range: Range, exchange: Exchange) -> Result<bool, Hole> {
    /// Flags that the program requested beyond private anonymous memory.
    const KEPT: c_int = libc::MAP_NORESERVE | libc::MAP_LOCKED | libc::MAP_POPULATE;
    let (start, length) = (range.start as usize, (range.end - range.start) as usize);
    let fixed = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let plain = (exchange.flags & KEPT) | fixed;
    let huge = plain & !libc::MAP_NORESERVE | libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
    let map = |flags| os::map(start, length, exchange.protection, flags, -1).is_some();
    if map(huge) {
        Ok(true)
    } else if map(plain) {
        Ok(false)
    } else {
        Err(Hole)
    }
}
