// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the death of a large block.

use toll_wire::{ANY, EventKind};

use crate::advise::{self, Target};
use crate::budget::{self, Charge};
use crate::live::{self, Block};
use crate::log::{self, Entry, Frames};
use crate::plan;
use crate::regions::Range;
use crate::start::{begin, hints_matter, is_own_mapping};

/// The malloc block at `address` is about to be freed.
#[cold]
pub fn block_dies(address: usize) {
    if let Some(block) = live::get(address) {
        dies(&block, is_own_mapping(address));
    }
}

/// Handles the death of a block; `unmapped`: its memory returns to the system.
pub fn dies(block: &Block, unmapped: bool) {
    let Some(_work) = begin() else {
        return;
    };
    live::remove(block.address, unmapped);
    if unmapped {
        budget::give_back(block.charge);
    } else {
        withdraw(block);
    }
    log_death(block);
}

/// Reverts the advice on a block with memory that stays mapped.
pub fn withdraw(block: &Block) {
    if block.charge == Charge::NOTHING || !hints_matter() {
        return;
    }
    let target = Target {
        range: Range::of(block.address, block.length),
        own_mapping: false,
        beyond: 0,
        paid: block.charge,
    };
    advise::withdraw(plan::get(), block.rule, &target);
}

pub fn log_death(block: &Block) {
    log::append(&Entry {
        kind: EventKind::Free,
        address: block.address,
        length: block.length,
        old: 0,
        frames: Frames::UNKNOWN,
        ordinal: ANY,
        rule: block.rule,
        advised: 0,
    });
}
