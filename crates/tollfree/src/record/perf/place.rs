// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps a data address to a site: by allocation event, by mapping, or by the address itself.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use toll_linux::symbols;
use toll_model::builder::{Counts, ProfileBuilder};
use toll_model::profile::{Profile, SiteRows};
use toll_model::site::{Level, Site, SiteKind};
use toll_model::{PAGE, REGION};

use super::layout::Layout;
use super::script::Map;

/// Addresses further apart than this belong to different spans.
const SPAN_GAP: u64 = 1 << 30;
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

/// How a mapping belongs to a site.
#[derive(Debug, Clone)]
struct Vma {
    end: u64,
    huge: bool,
    is: Is,
}

#[derive(Debug, Clone)]
enum Is {
    File {
        path: String,
        offset: u64,
    },
    Heap,
    Stack,
    Named(String),
    /// Unnamed; `base` is its offset among all unnamed mappings.
    Anonymous {
        base: u64,
    },
}

/// The mappings of one process, by start.
type Space = BTreeMap<u64, Vma>;

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

    fn in_mapping(
        &mut self,
        pid: Option<u32>,
        address: u64,
        huge: &mut bool,
    ) -> Option<(u32, u64)> {
        let space = match pid {
            Some(pid) => self.spaces.get(&pid)?,
            None if self.spaces.len() == 1 => self.spaces.values().next()?,
            None => return None,
        };
        let (&start, vma) = space.range(..=address).next_back()?;
        if address >= vma.end {
            return None;
        }
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

/// Removes `start..end` from the existing mappings.
fn carve(space: &mut Space, start: u64, end: u64) {
    let overlapping: Vec<u64> = space
        .range(..end)
        .rev()
        .take_while(|(_, v)| v.end > start)
        .map(|(&s, _)| s)
        .collect();
    for old in overlapping {
        let Some(vma) = space.remove(&old) else {
            continue;
        };
        if vma.end > end {
            let is = moved(&vma.is, end - old);
            space.insert(end, Vma { is, ..vma.clone() });
        }
        if old < start {
            space.insert(old, Vma { end: start, ..vma });
        }
    }
}

/// The rest of a mapping after its first `by` bytes.
fn moved(is: &Is, by: u64) -> Is {
    match is {
        Is::File { path, offset } => Is::File {
            path: path.clone(),
            offset: offset.saturating_add(by),
        },
        Is::Anonymous { base } => Is::Anonymous { base: base + by },
        other => other.clone(),
    }
}

/// Splits rows with addresses as offsets into one site per contiguous span.
fn spans(all: SiteRows, first_id: u32, layout: &Layout) -> Vec<SiteRows> {
    let mut spans: Vec<SiteRows> = Vec::new();
    let mut end = 0;
    for mut row in all.rows {
        let address = row.offset;
        let start = match spans.last() {
            Some(SiteRows { site, .. }) if address - end < SPAN_GAP => match site.kind {
                SiteKind::Address { start } => start,
                _ => address,
            },
            _ => {
                let start = address / REGION * REGION;
                let random = layout.is_random(address);
                spans.push(SiteRows {
                    site: Site {
                        id: first_id + spans.len() as u32,
                        kind: SiteKind::Address { start },
                        length: 0,
                        misalignment: 0,
                        level: if random {
                            Level::NotFound
                        } else {
                            Level::Exact
                        },
                    },
                    rows: Vec::new(),
                    freed: false,
                    places: Vec::new(),
                    address: None,
                });
                start
            }
        };
        end = address + row.length;
        row.offset = address - start;
        if let Some(span) = spans.last_mut() {
            span.site.length = (end - start).next_multiple_of(REGION);
            span.rows.push(row);
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use toll_model::builder::Meta;
    use toll_model::profile::Source;

    fn meta() -> Meta {
        Meta {
            source: Source::Perf,
            source_detail: String::new(),
            program: Default::default(),
            command: vec![],
            complete: true,
            sampled: 1.0,
            observations: 0,
            instructions: None,
            native_ns: None,
            footprint: None,
            warnings: vec![],
        }
    }

    fn map(start: u64, length: u64, name: &str) -> Map<'_> {
        Map {
            pid: 1,
            start,
            length,
            offset: 0x1000,
            executable: false,
            name,
        }
    }

    fn places(only: Option<Range<u64>>) -> Places {
        Places::new(only, Layout::new(Some(28)))
    }

    fn one() -> Counts {
        Counts {
            misses: 1.0,
            ..Counts::default()
        }
    }

    /// Site name, level and offset of the first row of every site.
    fn sites(places: Places) -> Vec<(String, Level, u64)> {
        let (profile, _) = places.finish(meta());
        let row = |a: &SiteRows| (a.site.to_string(), a.site.level, a.rows[0].offset);
        profile.sites.iter().map(row).collect()
    }

    #[test]
    fn mappings_name_what_they_hold() {
        let mut places = places(None);
        places.map(&map(0x5555_5555_0000, 0x10000, "[heap]"));
        places.map(&map(0x7ffc_0000_0000, 0x20000, "[stack]"));
        places.map(&map(0x7f00_0000_0000, 0x100000, "/opt/data"));
        places.map(&map(0x7f10_0000_1000, 0x100000, "//anon"));
        places.map(&map(0x1878_0000_0000, 1 << 30, "//anon"));
        for address in [
            0x5555_5555_3000,
            0x7ffc_0001_f000,
            0x7f00_0000_2000,
            0x7f10_0000_3000,
            0x1878_0040_0000,
        ] {
            places.count(Some(1), None, address, &one());
        }
        assert_eq!(
            sites(places),
            [
                ("heap".to_owned(), Level::Exact, 0x3000),
                ("stack".to_owned(), Level::Exact, 0),
                ("file /opt/data".to_owned(), Level::Exact, 0x3000),
                ("other anonymous memory".to_owned(), Level::Kind, 0x3000),
                ("address 0x187800000000".to_owned(), Level::Exact, 0x40_0000),
            ]
        );
    }

    #[test]
    fn a_new_mapping_replaces_the_part_that_it_covers() {
        let mut places = places(None);
        places.map(&map(0x7f00_0000_0000, 0x10000, "/a"));
        places.map(&map(0x7f00_0000_4000, 0x4000, "/b"));
        for address in [0x7f00_0000_3000u64, 0x7f00_0000_4000, 0x7f00_0000_8000] {
            places.count(Some(1), None, address, &one());
        }
        assert_eq!(
            sites(places),
            [
                ("file /a".to_owned(), Level::Exact, 0x4000),
                ("file /b".to_owned(), Level::Exact, 0x1000),
            ]
        );
    }

    #[test]
    fn bare_addresses_become_spans_and_random_ones_are_never_advised() {
        let mut places = places(None);
        for address in [0x1878_0020_0000u64, 0x1878_3000_0000, 0x7f12_3456_7000] {
            places.count(Some(1), None, address, &one());
        }
        assert_eq!(
            sites(places),
            [
                ("address 0x187800200000".to_owned(), Level::Exact, 0),
                (
                    "address 0x7f1234400000".to_owned(),
                    Level::NotFound,
                    0x160000
                ),
            ]
        );
    }

    #[test]
    fn a_range_names_its_own_site() {
        let mut places = places(Some(0x7f00_0000_0000..0x7f00_4000_0000));
        places.map(&map(0x7f00_0000_0000, 1 << 30, "//anon"));
        assert!(!places.wants(0x7f00_4000_0000));
        places.count(Some(1), None, 0x7f00_0020_0000, &one());
        assert_eq!(
            sites(places),
            [("address 0x7f0000000000".to_owned(), Level::Exact, 0x20_0000)]
        );
    }

    #[test]
    fn children_have_their_parents_mappings_until_they_exec() {
        let mut places = places(None);
        places.map(&map(0x5555_5555_0000, 0x10000, "[heap]"));
        places.fork(2, 1);
        places.count(Some(2), None, 0x5555_5555_0000, &one());
        places.exec(2);
        places.count(Some(2), None, 0x5555_5555_0000, &one());
        let names: Vec<String> = sites(places).into_iter().map(|a| a.0).collect();
        assert_eq!(names, ["heap", "address 0x555555400000"]);
    }

    #[test]
    fn blocks_are_found_while_they_live() {
        let kind = |ordinal| SiteKind::Alloc {
            frames: vec![],
            class: 21,
            ordinal,
            thread: 0,
        };
        let block = |ordinal, born_ns, died_ns| Block {
            kind: kind(ordinal),
            level: Level::Exact,
            process: 1,
            start: 0x7f00_0000_0010,
            length: 4 << 20,
            born_ns,
            died_ns,
        };
        let mut places = places(None).with_blocks(vec![block(0, 10, 20), block(1, 30, 40)]);
        places.count(Some(1), Some(35), 0x7f00_0000_0010 + 8192, &one());
        places.count(Some(1), Some(25), 0x7f00_0000_0010 + 8192, &one());
        places.count(Some(2), Some(35), 0x7f00_0000_0010 + 8192, &one());
        let (profile, _) = places.finish(meta());
        assert_eq!(profile.sites[0].site.kind, kind(1));
        assert_eq!(profile.sites[0].site.misalignment, 0);
        assert_eq!(profile.sites[0].rows[0].offset, 8192);
        assert_eq!(profile.sites[1].rows[0].misses, 2.0);
    }
}
