// SPDX-License-Identifier: MIT OR Apache-2.0
//! A second model of the TLB, written only from the description: recency lists, no state kept
//! between accesses, no optimizations. Replays a trace.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Sets of tags by recency, the latest last.
struct Array {
    sets: Vec<Vec<(u64, u8)>>,
    ways: usize,
}

impl Array {
    fn new(entries: usize, ways: usize) -> Array {
        Array {
            sets: vec![Vec::new(); entries / ways],
            ways,
        }
    }

    /// Whether the page was present; it becomes the most recent.
    fn access(&mut self, page: u64, size: u8) -> bool {
        let count = self.sets.len() as u64;
        let set = &mut self.sets[(page % count) as usize];
        let hit = match set.iter().position(|tag| *tag == (page, size)) {
            Some(at) => {
                set.remove(at);
                true
            }
            None => false,
        };
        set.push((page, size));
        if set.len() > self.ways {
            set.remove(0);
        }
        hit
    }

    fn invalidate(&mut self, start: u64, end: u64) {
        let overlaps = |page: u64, size: u8| {
            let bytes = 4096u64 << (9 * size);
            page * bytes < end && (page + 1) * bytes > start
        };
        for set in &mut self.sets {
            set.retain(|(page, size)| !overlaps(*page, *size));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    L1,
    L2,
    Walk,
}

struct Tlb {
    l1: [Array; 2],
    l2: Array,
}

impl Tlb {
    /// [`super::reader::SMALL`].
    fn small() -> Tlb {
        Tlb {
            l1: [Array::new(16, 4), Array::new(8, 4)],
            l2: Array::new(256, 4),
        }
    }

    fn access(&mut self, address: u64, size: u8) -> Found {
        let page = address >> (12 + 9 * size);
        if self.l1[size as usize].access(page, size) {
            return Found::L1;
        }
        match self.l2.access(page, size) {
            true => Found::L2,
            false => Found::Walk,
        }
    }

    fn invalidate(&mut self, start: u64, end: u64) {
        self.l1
            .iter_mut()
            .for_each(|array| array.invalidate(start, end));
        self.l2.invalidate(start, end);
    }
}

/// The reference counts of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub accesses: u64,
    pub l2_hits: u64,
    pub l2_spared: u64,
    pub walks: u64,
    pub walks_huge: u64,
}

/// The result of a replay.
#[derive(Default)]
pub struct Replay {
    pub pages: BTreeMap<u64, Counts>,
    /// Sum of log2 of the exact reuse distances in bytes of data, and their number.
    pub reuse: (f64, u64),
}

/// Distinct lines by recency, with exact distances.
#[derive(Default)]
struct Lines(Vec<u64>);

impl Lines {
    fn distance(&mut self, line: u64) -> usize {
        let distance = match self.0.iter().rev().position(|seen| *seen == line) {
            Some(distance) => {
                self.0.remove(self.0.len() - 1 - distance);
                distance
            }
            None => self.0.len(),
        };
        self.0.push(line);
        distance
    }
}

/// Replays a trace: two models per core, one for each page size that it contains.
pub fn replay(trace: &Path) -> Replay {
    let bytes = std::fs::read(trace).unwrap();
    let mut cores: HashMap<u16, (Tlb, Tlb, Lines)> = HashMap::new();
    let mut replay = Replay::default();
    for record in bytes.chunks_exact(24) {
        let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
        let (address, end) = (number(0), number(8));
        let core = u16::from_le_bytes([record[16], record[17]]);
        let [kind, native_size, huge_size, _, weight, counted] = record[18..24] else {
            unreachable!()
        };
        let (native, huge, lines) = cores
            .entry(core)
            .or_insert_with(|| (Tlb::small(), Tlb::small(), Lines::default()));
        if kind == 2 {
            native.invalidate(address, end);
            huge.invalidate(address, end);
            continue;
        }
        assert_eq!((kind, counted), (1, 1));
        let page = replay.pages.entry(address & !4095).or_default();
        page.accesses += u64::from(weight);
        let with_huge = huge.access(address, huge_size);
        match native.access(address, native_size) {
            Found::L1 => (),
            Found::L2 => {
                page.l2_hits += 1;
                page.l2_spared += u64::from(with_huge == Found::L1);
            }
            Found::Walk => {
                page.walks += 1;
                if native_size == 0 {
                    let distance = lines.distance(address >> 15);
                    replay.reuse.0 += 15.0 + ((distance + 1) as f64).log2();
                    replay.reuse.1 += 1;
                }
            }
        }
        page.walks_huge += u64::from(with_huge == Found::Walk);
    }
    replay
}
