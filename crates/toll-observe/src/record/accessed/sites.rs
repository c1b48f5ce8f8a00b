// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the memory of a mapping: by the blocks that the preload library recorded in it, and by the
//! kind of mapping for the rest.

use std::collections::{BTreeMap, HashMap};

use toll_linux::Root;
use toll_linux::accessed::Touched;
use toll_linux::events::{Block, EventFile, blocks, site_of};
use toll_linux::proc::{InMemory, Kind, Mapping};
use toll_linux::symbols::{self, Symbolizer};
use toll_model::builder::ProfileBuilder;
use toll_model::site::{Level, SiteKind};
use toll_model::wire::Event;
use toll_model::{PAGE, REGION};

use crate::record::options::is_own;

/// A part of a mapping.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// Site and offset in it; `None`: unnamed.
    pub place: Option<(u32, u64)>,
    pub length: u64,
}

/// Names memory of one process.
pub struct Sites {
    pid: u32,
    file: EventFile,
    events: Vec<Event>,
    /// Live blocks by address, without overlap: end and event.
    alive: BTreeMap<u64, (u64, Block)>,
    /// Sites of blocks by event.
    named: HashMap<usize, u32>,
    symbolizer: Symbolizer,
    build_ids: HashMap<String, String>,
    in_memory: InMemory,
    heap: Option<(u64, u64)>,
    /// Offsets of unnamed mappings in their common site, by start address.
    anonymous: HashMap<u64, u64>,
    anonymous_end: u64,
}

impl Sites {
    pub fn new(pid: u32, file: EventFile) -> Sites {
        Sites {
            pid,
            file,
            events: Vec::new(),
            alive: BTreeMap::new(),
            named: HashMap::new(),
            symbolizer: Symbolizer::new(),
            build_ids: HashMap::new(),
            in_memory: InMemory::read(&Root::system(), pid),
            heap: None,
            anonymous: HashMap::new(),
            anonymous_end: 0,
        }
    }

    /// Number of events that did not fit in the file.
    pub fn lost_events(&self) -> u32 {
        self.file.lost()
    }

    /// Whether tollfree itself caused the mapping: the event file, the preload library.
    pub fn is_ours(&self, mapping: &Mapping) -> bool {
        match mapping.kind() {
            Kind::File(path) => is_own(path, self.file.path()),
            _ => false,
        }
    }

    /// Updates the state with the events since the last scan.
    pub fn refresh(&mut self, touched: &[Touched]) {
        let mut heaps = touched
            .iter()
            .map(|t| &t.mapping)
            .filter(|m| m.kind() == Kind::Heap);
        if let Some(first) = heaps.next() {
            let end = heaps.map(|heap| heap.end).fold(first.end, u64::max);
            let start = self
                .heap
                .map_or(first.start, |heap| heap.0.min(first.start));
            self.heap = Some((start, end));
        }
        let events = self.file.events();
        if events.len() != self.events.len() {
            self.alive = alive(&blocks(&events), self.pid);
            self.events = events;
        }
    }

    /// Splits `start..end` of a mapping into parts, with the sites that name them.
    pub fn pieces(
        &mut self,
        mapping: &Mapping,
        start: u64,
        end: u64,
        builder: &mut ProfileBuilder,
    ) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = start;
        while at < end {
            let (until, block) = self.next_part(at, end);
            let place = match block {
                Some(block) => Some(self.block(&block, at, builder)),
                None => self.rest(mapping, at, until, builder),
            };
            let length = until - at;
            pieces.push(Piece { place, length });
            at = until;
        }
        pieces
    }

    /// Returns the end of the part at `at`, and its block.
    fn next_part(&self, at: u64, end: u64) -> (u64, Option<Block>) {
        if let Some((_, (block_end, block))) = self.alive.range(..=at).next_back() {
            if *block_end > at {
                return (end.min(*block_end), Some(*block));
            }
        }
        let next = self.alive.range(at..end).next();
        (next.map_or(end, |(start, _)| *start), None)
    }

    fn block(&mut self, block: &Block, at: u64, builder: &mut ProfileBuilder) -> (u32, u64) {
        // Offsets are relative to the page with the block's first byte.
        let start = block.address / PAGE * PAGE;
        let named = self.named.get(&block.event_index).copied();
        let site = named.unwrap_or_else(|| {
            let event = &self.events[block.event_index];
            let kind = site_of(event, &self.file.modules(), &mut self.symbolizer);
            let level = match event.thread {
                0 => Level::Exact,
                _ => Level::Class,
            };
            let site = builder.site(kind, block.length, start % REGION, level);
            builder.address(site, start);
            site
        });
        self.named.insert(block.event_index, site);
        (site, at.saturating_sub(start))
    }

    /// The site of the mapping itself, outside known blocks.
    fn rest(
        &mut self,
        mapping: &Mapping,
        at: u64,
        until: u64,
        builder: &mut ProfileBuilder,
    ) -> Option<(u32, u64)> {
        let (kind, start, length, level) = match mapping.kind() {
            Kind::Heap => {
                let (start, end) = self.heap.unwrap_or((mapping.start, mapping.end));
                (SiteKind::Heap, start, end - start, Level::Exact)
            }
            Kind::Stack => {
                let site = builder.site(SiteKind::Stack, mapping.len(), 0, Level::Exact);
                return Some((site, mapping.end - until));
            }
            Kind::Named(name) => {
                let name = name.to_owned();
                (
                    SiteKind::Vma { name },
                    mapping.start,
                    mapping.len(),
                    Level::Kind,
                )
            }
            Kind::File(path) => {
                let kind = match self.in_memory.is_shared(mapping) {
                    true => SiteKind::Shared {
                        path: path.to_owned(),
                    },
                    false => SiteKind::File {
                        build_id: self.build_id(path),
                        path: path.to_owned(),
                    },
                };
                let start = mapping.start.wrapping_sub(mapping.offset);
                (kind, start, mapping.offset + mapping.len(), Level::Exact)
            }
            Kind::Anonymous if mapping.len() >= REGION => {
                return Some(self.other(mapping, at, builder));
            }
            Kind::Anonymous | Kind::Special => return None,
        };
        let site = builder.site(kind, length, start % REGION, level);
        Some((site, at.wrapping_sub(start)))
    }

    /// Unnamed mappings follow each other in one site, each at its own distance from a region
    /// boundary.
    fn other(&mut self, mapping: &Mapping, at: u64, builder: &mut ProfileBuilder) -> (u32, u64) {
        let base = *self.anonymous.entry(mapping.start).or_insert_with(|| {
            let base = self.anonymous_end + mapping.start % REGION;
            self.anonymous_end = (base + mapping.len()).next_multiple_of(REGION);
            base
        });
        let length = self.anonymous_end;
        let site = builder.site(SiteKind::Anonymous, length, 0, Level::Kind);
        (site, base + (at - mapping.start))
    }

    fn build_id(&mut self, path: &str) -> String {
        if let Some(known) = self.build_ids.get(path) {
            return known.clone();
        }
        let build_id = symbols::build_id(path.as_ref());
        self.build_ids.insert(path.to_owned(), build_id.clone());
        build_id
    }
}

/// The live blocks of a process, cut so that none overlap: a later block takes precedence.
fn alive(blocks: &[Block], pid: u32) -> BTreeMap<u64, (u64, Block)> {
    let mut map: BTreeMap<u64, (u64, Block)> = BTreeMap::new();
    let alive = blocks
        .iter()
        .filter(|b| b.process == pid && b.died_ns == u64::MAX && b.length != 0);
    for block in alive {
        // Whole pages: malloc puts its header before a block that it maps.
        let start = block.address / PAGE * PAGE;
        let end = block
            .address
            .saturating_add(block.length)
            .next_multiple_of(PAGE);
        let before = map.range(..start).next_back().map(|(at, _)| *at);
        let first = before.unwrap_or(start);
        let touching: Vec<u64> = map.range(first..end).map(|(at, _)| *at).collect();
        for old_start in touching {
            let Some((old_end, old)) = map.remove(&old_start) else {
                continue;
            };
            if old_start < start {
                map.insert(old_start, (old_end.min(start), old));
            }
            if old_end > end {
                map.insert(end, (old_end, old));
            }
        }
        map.insert(start, (end, *block));
    }
    map
}
