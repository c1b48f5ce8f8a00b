// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks that events create, move and end.

use std::collections::{BTreeMap, HashMap};

use toll_model::wire::{Event, EventKind};

/// A location of a block over some time. A block that moves has several, all with the number of the
/// event that created it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Index of the event that named the block.
    pub event_index: usize,
    pub process: u32,
    pub address: u64,
    /// Length in bytes as requested by the program, not rounded.
    pub length: u64,
    pub born_ns: u64,
    /// `u64::MAX`: alive when the file was read.
    pub died_ns: u64,
}

impl Block {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.length)
    }
}

/// Tracks blocks over their lifetime, ordered by birth.
///
/// A malloc block may lie inside a mapping that an allocator made: if two contain an address at a
/// time, the one born later names it. Otherwise blocks do not overlap: a new one ends the old one,
/// even if that death went unnoticed (a mapping keeps the part before the new one: its end was
/// unmapped).
pub fn blocks(events: &[Event]) -> Vec<Block> {
    let mut lives = Lives::default();
    for (index, event) in events.iter().enumerate() {
        lives.follow(index, event);
    }
    lives.finish()
}

/// Live blocks of one process by address; mappings and malloc blocks are separate, because they may
/// nest.
#[derive(Debug, Default, Clone)]
struct Alive {
    mappings: BTreeMap<u64, Block>,
    blocks: BTreeMap<u64, Block>,
}

#[derive(Debug, Default)]
struct Lives {
    processes: HashMap<u32, Alive>,
    done: Vec<Block>,
}

impl Lives {
    fn follow(&mut self, index: usize, event: &Event) {
        let born = Block {
            event_index: index,
            process: event.process,
            address: event.address,
            length: event.length,
            born_ns: event.time_ns,
            died_ns: u64::MAX,
        };
        match event.kind {
            kind if kind == EventKind::Malloc as u32 => self.put(born, false),
            kind if kind == EventKind::Mmap as u32 || kind == EventKind::Shared as u32 => {
                self.put(born, true);
            }
            kind if kind == EventKind::Move as u32 => self.relocate(event, born),
            kind if kind == EventKind::Free as u32 => {
                self.take(event.process, event.address, event.time_ns);
            }
            kind if kind == EventKind::Process as u32 => self.process(event),
            _ => (),
        }
    }

    /// Adds a block and ends the blocks that it covers.
    fn put(&mut self, block: Block, mapping: bool) {
        let alive = self.processes.entry(block.process).or_default();
        let map = if mapping {
            &mut alive.mappings
        } else {
            &mut alive.blocks
        };
        let before = map.range(..block.address).next_back();
        let covered: Vec<u64> = before
            .into_iter()
            .chain(map.range(block.address..block.end()))
            .filter(|(_, old)| old.end() > block.address || old.address == block.address)
            .map(|(&address, _)| address)
            .collect();
        for address in covered {
            let Some(old) = map.remove(&address) else {
                continue;
            };
            let front = Block {
                length: block.address.saturating_sub(old.address),
                born_ns: block.born_ns,
                ..old
            };
            if mapping && front.length > 0 {
                map.insert(front.address, front);
            }
            end(&mut self.done, old, block.born_ns);
        }
        map.insert(block.address, block);
    }

    /// Ends the block at `address`; returns its index, and whether it is a mapping.
    fn take(&mut self, process: u32, address: u64, now: u64) -> Option<(usize, bool)> {
        let alive = self.processes.get_mut(&process)?;
        let block = alive.blocks.remove(&address).map(|block| (block, false));
        let found = block.or_else(|| Some((alive.mappings.remove(&address)?, true)));
        let (block, mapping) = found?;
        let index = block.event_index;
        end(&mut self.done, block, now);
        Some((index, mapping))
    }

    /// Moves the block at `event.old`. A block that is not known was born unobserved: it is named
    /// by the move.
    fn relocate(&mut self, event: &Event, mut born: Block) {
        let known = self.take(event.process, event.old, event.time_ns);
        let (index, mapping) = known.unwrap_or((born.event_index, false));
        born.event_index = index;
        self.put(born, mapping);
    }

    /// Starts a process. After exec it has no blocks; after fork (`old` is the parent) it has its
    /// parent's blocks.
    fn process(&mut self, event: &Event) {
        let past = self.processes.remove(&event.process).unwrap_or_default();
        for block in past.all() {
            end(&mut self.done, block, event.time_ns);
        }
        let parent = self.processes.get(&(event.old as u32));
        if let Some(parent) = parent.filter(|_| event.old != 0) {
            let child = parent.clone().with_process(event.process, event.time_ns);
            self.processes.insert(event.process, child);
        }
    }

    fn finish(mut self) -> Vec<Block> {
        let alive = self.processes.into_values().flat_map(Alive::all);
        self.done.extend(alive);
        let order = |block: &Block| (block.born_ns, block.event_index, block.address);
        self.done.sort_by_key(order);
        self.done
    }
}

impl Alive {
    fn all(self) -> impl Iterator<Item = Block> {
        self.mappings.into_values().chain(self.blocks.into_values())
    }

    fn with_process(mut self, process: u32, now: u64) -> Alive {
        let mappings = self.mappings.values_mut();
        for block in mappings.chain(self.blocks.values_mut()) {
            block.process = process;
            block.born_ns = now;
        }
        self
    }
}

fn end(done: &mut Vec<Block>, mut block: Block, now: u64) {
    block.died_ns = now;
    done.push(block);
}

#[cfg(test)]
mod tests;
