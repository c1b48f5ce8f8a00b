// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps a data address to a site: by allocation event, by mapping, or by the address itself.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use toll_linux::proc::InMemory;
use toll_linux::symbols;
use toll_model::builder::{Counts, ProfileBuilder};
use toll_model::profile::Profile;
use toll_model::site::{Level, SiteKind};
use toll_model::{PAGE, REGION};

use super::layout::Layout;
use super::script::Map;
use super::space::{Is, Space, Vma, carve};
use super::spans::spans;

/// First address that no user program has (with 57-bit addresses).
const USER_END: u64 = 1 << 56;

/// A block made by an allocation event.
#[derive(Debug, Clone)]
pub struct Block {
    pub kind: SiteKind,
    pub level: Level,
    pub process: u32,
    pub start: u64,
    pub length: u64,
    /// When it was allocated and freed, CLOCK_MONOTONIC ns.
    pub born_ns: u64,
    pub died_ns: u64,
}

/// Turns addresses into counts of sites.
pub struct Places {
    builder: ProfileBuilder,
    layout: Layout,
    only: Option<Range<u64>>,
    spaces: HashMap<u32, Space>,
    /// Sorted by start.
    blocks: Vec<Block>,
    longest_block: u64,
    /// Next offset among anonymous memory.
    anonymous: u64,
    /// Build-ids of files, read once.
    build_ids: HashMap<String, String>,
    in_memory: InMemory,
    /// Bare addresses; split into spans at the end.
    bare: Option<u32>,
    /// Program file of each process, from its first executable mapping.
    programs: HashMap<u32, String>,
}

impl Places {
    /// `only`: the addresses that count; they name the site themselves.
    pub fn new(only: Option<Range<u64>>, layout: Layout) -> Places {
        Places {
            builder: ProfileBuilder::default(),
            layout,
            only,
            spaces: HashMap::new(),
            blocks: Vec::new(),
            longest_block: 0,
            anonymous: 0,
            build_ids: HashMap::new(),
            // The recording may be of another machine: its mounts are unknown.
            in_memory: InMemory::default(),
            bare: None,
            programs: HashMap::new(),
        }
    }

    /// Adds the blocks of a recording's allocation events.
    pub fn with_blocks(mut self, mut blocks: Vec<Block>) -> Places {
        blocks.sort_by_key(|b| (b.start, b.born_ns));
        self.longest_block = blocks.iter().map(|b| b.length).max().unwrap_or(0);
        self.blocks = blocks;
        self
    }

    /// The file that a process runs, as far as known from its mappings.
    pub fn program(&self, pid: u32) -> Option<&str> {
        self.programs.get(&pid).map(String::as_str)
    }

    /// Handles a new process image.
    pub fn exec(&mut self, pid: u32) {
        self.spaces.remove(&pid);
        self.programs.remove(&pid);
    }

    /// Handles a fork: the child has its parent's mappings.
    pub fn fork(&mut self, pid: u32, parent: u32) {
        if pid == parent {
            return;
        }
        if let Some(space) = self.spaces.get(&parent).cloned() {
            self.spaces.insert(pid, space);
        }
        if let Some(program) = self.programs.get(&parent).cloned() {
            self.programs.insert(pid, program);
        }
    }

    /// Handles a new mapping; it replaces what was mapped there.
    pub fn map(&mut self, map: &Map) {
        let Some(end) = map.start.checked_add(map.length).filter(|e| *e <= USER_END) else {
            return;
        };
        if map.length == 0 {
            return;
        }
        self.layout.learn(map);
        let is_program = map.executable && map.name.starts_with('/') && !map.name.contains("/ld-");
        if is_program {
            let program = || map.name.to_owned();
            self.programs.entry(map.pid).or_insert_with(program);
        }
        let is = match map.name {
            "//anon" | "" => Is::Anonymous {
                base: self.anonymous_base(map),
            },
            "[heap]" => Is::Heap,
            "[stack]" => Is::Stack,
            name if name.starts_with('[') => Is::Named(name.to_owned()),
            path => Is::File {
                path: path.to_owned(),
                offset: map.offset,
            },
        };
        let huge = map.name.starts_with("/anon_hugepage");
        let space = self.spaces.entry(map.pid).or_default();
        carve(space, map.start, end);
        space.insert(map.start, Vma { end, huge, is });
    }

    /// Offsets among anonymous memory keep the address's offset within a region. Mappings at fixed
    /// addresses need none.
    fn anonymous_base(&mut self, map: &Map) -> u64 {
        if !self.layout.is_random(map.start) {
            return 0;
        }
        let base = self.anonymous.next_multiple_of(REGION) + map.start % REGION;
        self.anonymous = base.saturating_add(map.length).min(USER_END / 2);
        base
    }

    /// Whether an address is counted.
    pub fn wants(&self, address: u64) -> bool {
        let in_range = self.only.as_ref().is_none_or(|r| r.contains(&address));
        address < USER_END && in_range
    }

    /// Counts an access; `pid` and `time_ns` if the recording has them.
    pub fn count(&mut self, pid: Option<u32>, time_ns: Option<u64>, address: u64, counts: &Counts) {
        let mut counts = *counts;
        let (site, offset) = self
            .in_block(pid, time_ns, address)
            .or_else(|| self.in_range(address))
            .or_else(|| self.in_mapping(pid, address, &mut counts.huge))
            .unwrap_or_else(|| self.bare(address));
        self.builder.count(site, offset, &counts);
    }

    fn in_block(
        &mut self,
        pid: Option<u32>,
        time_ns: Option<u64>,
        address: u64,
    ) -> Option<(u32, u64)> {
        let lives = |block: &&Block| {
            address - block.start < block.length
                && pid.is_none_or(|pid| pid == block.process)
                && time_ns.is_none_or(|t| (block.born_ns..=block.died_ns).contains(&t))
        };
        let behind = self.blocks.partition_point(|b| b.start <= address);
        let block = self.blocks[..behind]
            .iter()
            .rev()
            .take_while(|b| address - b.start < self.longest_block)
            .filter(lives)
            // A block of malloc lies in a mapping that malloc made earlier.
            .max_by_key(|b| b.born_ns)?;
        // Offsets are relative to the page with the block's first byte.
        let start = block.start / PAGE * PAGE;
        let site = self.builder.site(
            block.kind.clone(),
            block.length,
            start % REGION,
            block.level,
        );
        self.builder.address(site, start);
        Some((site, address - start))
    }

    fn in_range(&mut self, address: u64) -> Option<(u32, u64)> {
        let range = self.only.clone()?;
        let start = range.start / REGION * REGION;
        let kind = SiteKind::Address { start };
        let site = self
            .builder
            .site(kind, range.end.min(USER_END) - start, 0, Level::Exact);
        Some((site, address - start))
    }

    /// The file that is mapped at an address.
    pub fn file(&self, pid: Option<u32>, address: u64) -> Option<&str> {
        let (_, vma) = mapping_at(space_of(&self.spaces, pid)?, address)?;
        match &vma.is {
            Is::File { path, .. } => Some(path),
            _ => None,
        }
    }

    fn in_mapping(
        &mut self,
        pid: Option<u32>,
        address: u64,
        huge: &mut bool,
    ) -> Option<(u32, u64)> {
        let space = space_of(&self.spaces, pid)?;
        let (start, vma) = mapping_at(space, address)?;
        *huge |= vma.huge;
        let into = address - start;
        let (kind, offset, misalignment, level) = match &vma.is {
            Is::Heap => {
                let first = space.iter().find(|(_, v)| matches!(v.is, Is::Heap));
                let heap = first.map_or(start, |(&s, _)| s);
                (SiteKind::Heap, address - heap, heap % REGION, Level::Exact)
            }
            Is::Stack => (SiteKind::Stack, vma.end - 1 - address, 0, Level::Exact),
            Is::Named(name) => {
                let kind = SiteKind::Vma { name: name.clone() };
                (kind, into, start % REGION, Level::Exact)
            }
            Is::Anonymous { .. } if !self.layout.is_random(address) => {
                // The address may be the same in every run.
                let first = start / REGION * REGION;
                let kind = SiteKind::Address { start: first };
                (kind, address - first, 0, Level::Exact)
            }
            Is::Anonymous { base } => (SiteKind::Anonymous, base + into, 0, Level::Kind),
            Is::File { path, offset } if self.in_memory.holds(path) => {
                let path = path.clone();
                let misalignment = start.wrapping_sub(*offset) % REGION;
                let kind = SiteKind::Shared { path };
                (kind, offset.checked_add(into)?, misalignment, Level::Exact)
            }
            Is::File { path, offset } => {
                let build_id = self
                    .build_ids
                    .entry(path.clone())
                    .or_insert_with(|| symbols::build_id(Path::new(path)))
                    .clone();
                let path = path.clone();
                let misalignment = start.wrapping_sub(*offset) % REGION;
                let kind = SiteKind::File { build_id, path };
                (kind, offset.checked_add(into)?, misalignment, Level::Exact)
            }
        };
        let length = match kind {
            SiteKind::Address { start } => vma.end - start,
            _ => 0,
        };
        Some((self.builder.site(kind, length, misalignment, level), offset))
    }

    /// Handles an address in no known mapping.
    fn bare(&mut self, address: u64) -> (u32, u64) {
        let builder = &mut self.builder;
        // A start address that no program has: a kind of its own until the spans are known.
        let kind = SiteKind::Address { start: USER_END };
        let whole = || builder.site(kind, USER_END, 0, Level::NotFound);
        (*self.bare.get_or_insert_with(whole), address)
    }

    /// Finishes counting. The third value tells whether some spans have random addresses.
    pub fn finish(self, meta: toll_model::builder::Meta) -> (Profile, bool) {
        let bare = self.bare;
        let mut profile = self.builder.finish(meta);
        let mut random = false;
        if let Some(at) = profile.sites.iter().position(|a| Some(a.site.id) == bare) {
            let rows = profile.sites.remove(at);
            let first_id = profile.sites.iter().map(|a| a.site.id + 1).max();
            let spans = spans(rows, first_id.unwrap_or(0), &self.layout);
            random = spans.iter().any(|s| s.site.level == Level::NotFound);
            profile.sites.extend(spans);
        }
        (profile, random)
    }
}

/// The mappings of a process; without its id, those of the only one.
fn space_of(spaces: &HashMap<u32, Space>, pid: Option<u32>) -> Option<&Space> {
    match pid {
        Some(pid) => spaces.get(&pid),
        None if spaces.len() == 1 => spaces.values().next(),
        None => None,
    }
}

/// The mapping of an address, with its start.
fn mapping_at(space: &Space, address: u64) -> Option<(u64, &Vma)> {
    let (&start, vma) = space.range(..=address).next_back()?;
    (address < vma.end).then_some((start, vma))
}

#[cfg(test)]
mod tests;
