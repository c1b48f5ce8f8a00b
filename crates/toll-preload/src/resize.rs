// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles the move of a large block, and the unmapping of a part of it.

use toll_wire::{ANY, EventKind};

use crate::advise::{self, Advised, Target};
use crate::birth::give;
use crate::budget;
use crate::death::{dies, log_death, withdraw};
use crate::live::{self, Block};
use crate::log::{self, Entry, Frames};
use crate::os::rounded;
use crate::plan;
use crate::regions::Range;
use crate::start::{begin, is_own_mapping};

/// A block that was removed from the table because its owner is about to resize it.
pub struct Lifted {
    block: Block,
    /// Whether it is a mapping of its own.
    own_mapping: bool,
}

/// Removes the malloc block at `address` from the table, if it is a large one.
pub fn lift_block(address: usize) -> Option<Lifted> {
    let block = live::get(address)?;
    let own_mapping = is_own_mapping(address);
    live::remove(address, own_mapping);
    Some(Lifted { block, own_mapping })
}

/// Removes the mapping `address..address + length` from the table.
pub fn lift_mapping(address: usize, length: usize) -> Option<Lifted> {
    let block = live::get(address).filter(|block| block.length <= length)?;
    live::remove(address, true);
    Some(Lifted {
        block,
        own_mapping: true,
    })
}

impl Lifted {
    /// The resize failed: the block is unchanged.
    pub fn put_back(self) {
        live::insert(self.block);
    }

    /// The block was freed instead.
    pub fn died(self) {
        if self.own_mapping {
            budget::give_back(self.block.charge);
        }
        if let Some(_work) = begin() {
            log_death(&self.block);
        }
    }

    /// realloc moved the block to `address`.
    pub fn block_moved(self, address: usize, length: usize) {
        // A split mapping cannot be moved as a whole: glibc copies instead.
        let kept = self.own_mapping && is_own_mapping(address) && !self.is_split();
        self.moved(address, length, kept);
    }

    /// mremap moved the mapping to `address`.
    pub fn mapping_moved(self, address: usize, length: usize) {
        self.moved(address, length, true);
    }

    /// Whether advice has split the block into several mappings.
    pub fn is_split(&self) -> bool {
        self.block.charge.splits > 0
    }

    /// Returns the pieces into which advice has split the block.
    pub fn pieces<F: FnMut(Range)>(&self, piece: F) {
        let block = Range::of(self.block.address, self.block.length);
        advise::pieces(plan::get(), self.block.rule, block, piece);
    }

    /// `kept`: the same mapping was moved or resized, so that its old part has its advice already.
    fn moved(self, address: usize, length: usize, kept: bool) {
        let old = self.block;
        if self.own_mapping && !kept {
            budget::give_back(old.charge);
        }
        let Some(_work) = begin() else {
            return;
        };
        if !self.own_mapping && address != old.address {
            withdraw(&old);
        }
        let target = Target {
            range: Range::of(address, length),
            own_mapping: kept || is_own_mapping(address),
            // Copied memory is already touched; moved memory was advised before.
            beyond: address.saturating_add(old.length.min(length)) as u64,
            paid: if kept {
                old.charge
            } else {
                live::charge(address)
            },
        };
        let advised = if length > old.length {
            give(plan::get(), old.rule, &target)
        } else {
            Advised {
                bytes: 0,
                charge: target.paid,
            }
        };
        live::insert(Block {
            address,
            length,
            rule: old.rule,
            charge: advised.charge,
        });
        log::append(&Entry {
            kind: EventKind::Move,
            address,
            length,
            old: old.address,
            frames: Frames::UNKNOWN,
            ordinal: ANY,
            rule: old.rule,
            advised: advised.bytes,
        });
    }
}

/// The range is about to be unmapped: the end of a mapping, or its front (a way to get an aligned
/// mapping); in that case the rest has a new start.
#[cold]
pub fn mapping_dies(address: usize, length: usize) {
    let Some(block) = live::get(address) else {
        return;
    };
    let cut = rounded(length);
    if cut >= block.length {
        dies(&block, true);
        return;
    }
    live::remove(address, true);
    let rest = Lifted {
        // Nothing of it was advised relative to its new start yet.
        block: Block { length: 0, ..block },
        own_mapping: true,
    };
    rest.moved(address + cut, block.length - cut, true);
}
