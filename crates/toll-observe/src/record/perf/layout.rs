// SPDX-License-Identifier: MIT OR Apache-2.0
//! Detects the addresses of a process that are random (ASLR), and so differ in the next run.
//!
//! On x86-64, a position-independent program begins at two thirds of the address space, and
//! mappings grow down from its top; each is moved by a random number of pages of `vm.mmap_rnd_bits`
//! bits: 28 by default, 32 in some distributions (Ubuntu 24.04).

use std::ops::Range;

use toll_linux::Root;
use toll_model::PAGE;

use super::script::Map;

/// End of the user's addresses (`DEFAULT_MAP_WINDOW`, with 4-level page tables).
const TOP: u64 = 0x7fff_ffff_f000;
/// Where position-independent programs begin (`ELF_ET_DYN_BASE`): the heap follows them.
const PROGRAM: u64 = (TOP / 3 * 2) & !(PAGE - 1);
/// Where mappings begin that grow upwards: with an unlimited stack, or in the legacy layout.
const BOTTOM_UP: u64 = (TOP / 3) & !(PAGE - 1);
/// Size of a program's mappings and of the stack limit, beyond the random part.
const ROOM: u64 = 1 << 40;
/// Maximum number of bits on x86-64 (`ARCH_MMAP_RND_BITS_MAX`). Recordings do not contain theirs.
const MOST_BITS: u32 = 32;
/// Libraries below this address were placed explicitly.
const LOWEST_RANDOM: u64 = 1 << 32;

/// The random addresses of the processes of a recording.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The random range of a mapping, bytes.
    spread: u64,
    random: Vec<Range<u64>>,
}

impl Layout {
    /// `bits`: `vm.mmap_rnd_bits` of the machine; `None`: unknown, the maximum is assumed.
    pub fn new(bits: Option<u32>) -> Layout {
        let spread = PAGE << bits.unwrap_or(MOST_BITS).min(MOST_BITS);
        Layout {
            spread,
            random: vec![
                BOTTOM_UP..BOTTOM_UP + spread + ROOM,
                PROGRAM..PROGRAM + spread + ROOM,
                TOP - spread - ROOM..1 << 47,
            ],
        }
    }

    /// Returns the bits of this machine.
    pub fn bits(root: &Root) -> Option<u32> {
        let bits = root.number("/proc/sys/vm/mmap_rnd_bits")?;
        u32::try_from(bits).ok()
    }

    /// Whether an address of this run is random, so that it differs in the next.
    pub fn is_random(&self, address: u64) -> bool {
        self.random.iter().any(|range| range.contains(&address))
    }

    /// Learns the mapping area from a library: the loader lets the kernel choose its address. A
    /// large stack limit, for example, moves all mappings down.
    pub fn learn(&mut self, map: &Map) {
        let library = map.executable && map.name.contains(".so");
        if library && map.start >= LOWEST_RANDOM && !self.is_random(map.start) {
            let reach = self.spread + ROOM;
            let start = map.start.saturating_sub(reach).max(LOWEST_RANDOM);
            self.random.push(start..map.start.saturating_add(reach));
        }
    }
}

#[cfg(test)]
mod tests;
