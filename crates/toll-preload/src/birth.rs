// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the birth of a large block: names, advises and logs it.

use core::ffi::c_int;

use toll_wire::advice::HUGE;
use toll_wire::{ANY, EventKind, class};

use crate::advise::{self, Advised, Exchange, Hole, Target};
use crate::budget::Charge;
use crate::live::{self, Block};
use crate::log::{self, Entry, Frames};
use crate::plan::{self, Plan};
use crate::regions::Range;
use crate::shared::{self, Request};
use crate::start::{begin, is_own_mapping};
use crate::{ordinals, stack, thread};

/// A block that is being created.
struct Birth {
    kind: EventKind,
    address: usize,
    length: usize,
    own_mapping: bool,
    /// Protection and flags of a mapping with replaceable pages.
    exchange: Option<Exchange>,
    /// For a shared mapping: the request.
    shared: Option<Request>,
}

/// Handles the birth of a block from malloc or a related function.
pub fn block_born(address: usize, length: usize) {
    if address == 0 {
        return;
    }
    let Some(_work) = begin() else {
        return;
    };
    // Only memory that may be replaced can get a hole.
    let _ = born(&Birth {
        kind: EventKind::Malloc,
        address,
        length,
        own_mapping: is_own_mapping(address),
        exchange: None,
        shared: None,
    });
}

/// Handles a new anonymous mapping. Returns its address, which may have changed.
///
/// # Errors
/// [`Hole`]: the mapping must be removed, and the program gets an error.
pub fn mapping_born(address: usize, protection: c_int, request: &Request) -> Result<usize, Hole> {
    let Some(_work) = begin() else {
        return Ok(address);
    };
    let shared = request.is_shared();
    let flags = request.flags;
    born(&Birth {
        kind: match shared {
            true => EventKind::Shared,
            false => EventKind::Mmap,
        },
        address,
        length: request.length,
        own_mapping: true,
        exchange: (!shared).then_some(Exchange { protection, flags }),
        shared: shared.then_some(*request),
    })
}

fn born(birth: &Birth) -> Result<usize, Hole> {
    let plan = plan::get();
    let (frames, ordinal, rule) = identify(plan, birth.length);
    let address = place(plan, rule, birth);
    let target = Target {
        range: Range::of(address, birth.length),
        own_mapping: birth.own_mapping,
        beyond: 0,
        paid: live::charge(address),
    };
    let advised = carry_out(plan, rule, &target, birth.exchange)?;
    if birth.shared.is_some() && !plan.advises_all() {
        shared::collapse(plan, rule, target.range);
    }
    if log::is_on() || rule != ANY || advised.charge != Charge::NOTHING {
        live::insert(Block {
            address,
            length: birth.length,
            rule,
            charge: advised.charge,
        });
    }
    log::append(&Entry {
        kind: birth.kind,
        address,
        length: birth.length,
        old: 0,
        frames,
        ordinal,
        rule,
        advised: advised.bytes,
    });
    Ok(address)
}

/// Returns the address of a block; a planned shared mapping is moved to where huge pages fit.
fn place(plan: &Plan, rule: u32, birth: &Birth) -> usize {
    let planned = || plan.advises_all() || plan.intervals(rule, HUGE).next().is_some();
    match &birth.shared {
        Some(request) if planned() => shared::aligned(birth.address, request),
        _ => birth.address,
    }
}

/// Names an event: its frames, its ordinal, and the rule that it matches.
fn identify(plan: &Plan, length: usize) -> (Frames, u32, u32) {
    let stack = if log::is_on() {
        stack::walk(|_| true)
    } else if plan.has_rules() {
        stack::walk(|first| plan::get().may_start(first.planned()))
    } else {
        None
    };
    let Some(stack) = stack else {
        return (Frames::UNKNOWN, ANY, ANY);
    };
    let thread = thread::ordinal();
    let ordinal = ordinals::next(stack.call_site(), class(length as u64), thread);
    let rule = if plan.has_rules() {
        stack.planned(|frames| {
            plan.rule(&plan::Event {
                frames,
                length: length as u64,
                ordinal,
                thread,
            })
        })
    } else {
        ANY
    };
    (stack.logged(), ordinal, rule)
}

/// Gives the planned advice for a block.
fn carry_out(
    plan: &Plan,
    rule: u32,
    target: &Target,
    exchange: Option<Exchange>,
) -> Result<Advised, Hole> {
    match exchange {
        Some(exchange) if exchanges(plan) => advise::hugetlb(plan, target, exchange),
        _ => Ok(give(plan, rule, target)),
    }
}

/// Whether to use memory of the hugetlb pool.
fn exchanges(plan: &Plan) -> bool {
    plan.uses_hugetlb() && !plan.advises_all() && !plan.addresses().is_empty()
}

/// Gives advice only.
pub fn give(plan: &Plan, rule: u32, target: &Target) -> Advised {
    if plan.advises_all() {
        advise::all(target)
    } else if plan.addresses().is_empty() {
        advise::planned(plan, rule, target)
    } else {
        advise::addresses(plan, target)
    }
}
