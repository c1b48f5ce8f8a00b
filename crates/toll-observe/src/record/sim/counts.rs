// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts a recording and its allocation events to a profile.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use toll_linux::events::{self, EventFile, ModuleInfo};
use toll_linux::symbols::{self, Symbolizer};
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::profile::{Place, Profile, Program, Source};
use toll_model::site::{Level, SiteKind};
use toll_model::wire::recording::{BlockKind, Page, flags, page};
use toll_model::wire::{Event, EventKind};
use toll_model::{PAGE, REGION};

use super::recording::{Block, Recording, text};

/// Address of the Go runtime's heap.
const GO_HEAP: u64 = 0xc0_0000_0000;
/// Anonymous mappings of a JVM of at least this length belong to its heap.
const JVM_HEAP: u64 = 64 << 20;

/// Metadata that the recording does not contain.
pub struct About {
    pub program: Program,
    pub command: Vec<String>,
    pub source_detail: String,
    /// Whether the run ended by itself.
    pub complete: bool,
    pub native: Option<Duration>,
    /// The requested fixed addresses: they name the site themselves.
    pub only: Option<Range<u64>>,
    pub warnings: Vec<String>,
}

/// Builds the profile.
pub fn profile(recording: &Recording, events: &EventFile, about: About) -> Result<Profile> {
    let header = &recording.header;
    let mut namer = Namer::new(recording, events, about.only);
    let mut builder = ProfileBuilder::new();
    let scale = header.seen as f64 / header.counted.max(1) as f64;
    for block in &recording.blocks {
        let mut name: Option<(u32, u64)> = None;
        recording.pages(block, |offset, page| {
            let (site, start) = *name.get_or_insert_with(|| {
                let name = namer.site(block, &mut builder);
                place(block, name, &mut builder);
                name
            });
            let offset = match block.kind {
                // Counted from the top.
                BlockKind::Stack => block.length - PAGE - offset,
                _ => start.wrapping_add(offset),
            };
            builder.count(site, offset, &counts(page, scale));
        })?;
        if let (Some((site, _)), true, BlockKind::Event) = (name, block.freed, block.kind) {
            builder.freed(site);
        }
    }
    let mut warnings = about.warnings;
    warnings.extend(warnings_of(recording, events.lost()));
    let ended = header.flags & flags::COMPLETE != 0 && header.flags & flags::EXECED == 0;
    Ok(builder.finish(Meta {
        source: Source::Sim,
        source_detail: about.source_detail,
        program: about.program,
        command: about.command,
        complete: about.complete && ended,
        sampled: (1.0 / scale).clamp(f64::MIN_POSITIVE, 1.0),
        observations: header.walks,
        instructions: None,
        native_ns: about.native.map(|native| native.as_nanos() as u64),
        footprint: None,
        warnings,
    }))
}

/// Records the mapping that contains the block.
fn place(block: &Block, (site, offset): (u32, u64), builder: &mut ProfileBuilder) {
    let Some(mapping) = block.mapping else { return };
    builder.place(
        site,
        Place {
            offset,
            length: block.length,
            class: mapping.class,
            protection: mapping.protection,
            ordinal: mapping.ordinal,
            at: block.mapping_at,
        },
    );
}

/// A page's counts, scaled to the whole run.
fn counts(page: &Page, scale: f64) -> Counts {
    let told = page.dependent + page.independent;
    Counts {
        accesses: page.accesses as f64 * scale,
        misses: page.walks as f64 * scale,
        misses_huge: Some(page.walks_huge as f64 * scale),
        l2_spared: page.l2_spared as f64 * scale,
        reuse_log2: (page.reuse_count > 0)
            .then(|| (page.reuse_sum as f64 / 256.0 / f64::from(page.reuse_count)) as f32),
        dependent: (told > 0).then(|| (f64::from(page.dependent) / f64::from(told)) as f32),
        huge: page.flags & page::HUGE != 0,
    }
}

/// Finds the sites of blocks.
struct Namer<'a> {
    events: Vec<Event>,
    modules: Vec<ModuleInfo>,
    symbolizer: Symbolizer,
    /// The events that made the blocks which were moved, by the event of the move.
    origins: HashMap<u32, u32>,
    build_ids: HashMap<String, String>,
    recording: &'a Recording,
    /// The Java heap, if there is one.
    jvm: Option<u64>,
    /// The requested fixed addresses.
    only: Option<Range<u64>>,
    /// Offsets of other anonymous memory in its common site.
    anonymous: Anonymous,
}

impl<'a> Namer<'a> {
    fn new(recording: &'a Recording, file: &EventFile, only: Option<Range<u64>>) -> Namer<'a> {
        let events = file.events();
        let is_jvm = |b: &&Block| b.path.ends_with("/libjvm.so");
        let jvm = recording.blocks.iter().find(is_jvm).and_then(|_| {
            let anonymous = |b: &&Block| b.kind == BlockKind::Anonymous && b.length >= JVM_HEAP;
            let largest = recording.blocks.iter().filter(anonymous);
            largest.max_by_key(|b| b.length).map(|b| b.address)
        });
        Namer {
            origins: origins(&events),
            events,
            modules: file.modules(),
            symbolizer: Symbolizer::new(),
            build_ids: HashMap::new(),
            recording,
            jvm,
            only,
            anonymous: Anonymous::new(&recording.blocks),
        }
    }

    /// The site of a block, and the offset of the block's start in it.
    fn site(&mut self, block: &Block, builder: &mut ProfileBuilder) -> (u32, u64) {
        if let (Some(only), true) = (&self.only, block.kind != BlockKind::Stack) {
            let start = only.start / REGION * REGION;
            let kind = SiteKind::Address { start };
            let id = builder.site(kind, only.end - start, 0, Level::Exact);
            // The block may begin before the range, but its counted pages do not.
            return (id, block.address.wrapping_sub(start));
        }
        let start = block.address.wrapping_sub(block.offset);
        match block.kind {
            BlockKind::Event => {
                let index = *self.origins.get(&block.event).unwrap_or(&block.event);
                match self.events.get(index as usize) {
                    Some(event) => self.event(*event, block, builder),
                    None => self.anonymous(block, builder),
                }
            }
            BlockKind::Heap => {
                let length = self.heap_length(block);
                let id = builder.site(SiteKind::Heap, length, start % REGION, Level::Class);
                (id, block.offset)
            }
            BlockKind::Stack => {
                let length = block.length;
                let id = builder.site(SiteKind::Stack, length, start % REGION, Level::Kind);
                (id, 0)
            }
            BlockKind::File => {
                let kind = self.file(block);
                let length = block.offset + block.length;
                let id = builder.site(kind, length, start % REGION, Level::Exact);
                (id, block.offset)
            }
            BlockKind::Anonymous => self.anonymous(block, builder),
        }
    }

    fn event(&mut self, event: Event, block: &Block, builder: &mut ProfileBuilder) -> (u32, u64) {
        let kind = events::site_of(&event, &self.modules, &mut self.symbolizer);
        // Ordinals of other threads depend on scheduling.
        let level = match event.thread {
            0 => Level::Exact,
            _ => Level::Class,
        };
        let misalignment = block.address % REGION;
        let id = builder.site(kind, block.offset + block.length, misalignment, level);
        builder.address(id, block.address.wrapping_sub(block.offset));
        (id, block.offset)
    }

    /// The site of unnamed memory: a runtime's heap, or one common site.
    fn anonymous(&mut self, block: &Block, builder: &mut ProfileBuilder) -> (u32, u64) {
        let runtime = |name: &str| SiteKind::Reservation {
            runtime: name.to_owned(),
        };
        let end = block.offset + block.length;
        if self.jvm == Some(block.address) {
            let kind = runtime("jvm");
            let id = builder.site(kind, end, block.address % REGION, Level::Class);
            return (id, 0);
        }
        if (GO_HEAP..GO_HEAP + (1 << 38)).contains(&block.address) && self.is_go() {
            let offset = block.address - GO_HEAP;
            let id = builder.site(runtime("go"), offset + block.length, 0, Level::Class);
            return (id, offset);
        }
        let start = self.anonymous.offset(block.address, block.length);
        let id = builder.site(SiteKind::Anonymous, start + block.length, 0, Level::Kind);
        (id, start)
    }

    /// Whether a block is a Go arena, which has a fixed address.
    fn is_go(&self) -> bool {
        let mut blocks = self.recording.blocks.iter();
        blocks.any(|b| b.kind == BlockKind::Anonymous && b.address == GO_HEAP)
    }

    /// The used length of the heap: its last block is longer.
    fn heap_length(&self, block: &Block) -> u64 {
        let mut last = 0;
        let _ = self
            .recording
            .pages(block, |offset, _| last = offset + PAGE);
        block.offset + last
    }

    fn file(&mut self, block: &Block) -> SiteKind {
        let path = block.path.clone();
        match block.shared {
            true => SiteKind::Shared { path },
            false => SiteKind::File {
                build_id: self.build_id(&path),
                path,
            },
        }
    }

    fn build_id(&mut self, path: &str) -> String {
        let known = self.build_ids.get(path).cloned();
        known.unwrap_or_else(|| {
            let id = match path.starts_with('/') {
                true => symbols::build_id(Path::new(path)),
                false => String::new(),
            };
            self.build_ids.insert(path.to_owned(), id.clone());
            id
        })
    }
}

/// Lays out unnamed mappings in one site: they follow each other at their own distance from a
/// region boundary, and mappings that shared a region share one again. The arenas of an allocator,
/// each smaller than a region, fill regions together.
#[derive(Debug, Default)]
struct Anonymous {
    /// Runs of adjacent regions with mappings, by their first region.
    runs: BTreeMap<u64, Run>,
    /// Bytes of the site so far.
    length: u64,
}

/// A run of adjacent regions.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The region after the last.
    end: u64,
    /// Offset of the first region in the site, bytes; unknown until part of it is used.
    base: Option<u64>,
}

impl Anonymous {
    fn new(blocks: &[Block]) -> Anonymous {
        let anonymous = blocks.iter().filter(|b| b.kind == BlockKind::Anonymous);
        Anonymous::of(anonymous.map(|b| (b.address, b.length)))
    }

    /// The layout of mappings, each with its address and length.
    fn of(mappings: impl Iterator<Item = (u64, u64)>) -> Anonymous {
        let mut spans: Vec<(u64, u64)> = mappings.map(|(at, len)| regions_of(at, len)).collect();
        spans.sort_unstable();
        let mut runs: BTreeMap<u64, Run> = BTreeMap::new();
        for (first, end) in spans {
            match runs.last_entry() {
                Some(mut run) if first <= run.get().end => {
                    let run = run.get_mut();
                    run.end = run.end.max(end);
                }
                _ => {
                    runs.insert(first, Run { end, base: None });
                }
            }
        }
        Anonymous { runs, length: 0 }
    }

    /// The offset in the site of the mapping at `address`.
    fn offset(&mut self, address: u64, length: u64) -> u64 {
        let (first, end) = regions_of(address, length);
        let known = self.runs.range(..=first).next_back();
        let first = match known {
            Some((&run, Run { end: run_end, .. })) if end <= *run_end => run,
            // An event was lost: its neighbours are unknown.
            _ => first,
        };
        let run = self.runs.entry(first).or_insert(Run { end, base: None });
        let base = *run.base.get_or_insert_with(|| {
            let base = self.length;
            self.length += (run.end - first) * REGION;
            base
        });
        base + (address - first * REGION)
    }
}

/// The region numbers of a range: the first, and the one after the last.
fn regions_of(address: u64, length: u64) -> (u64, u64) {
    let end = address.saturating_add(length.max(1)).div_ceil(REGION);
    (address / REGION, end)
}

/// For each move, the event that made the moved block.
fn origins(all: &[Event]) -> HashMap<u32, u32> {
    let lives = events::blocks(all);
    let by_birth: HashMap<(u64, u64), usize> = lives
        .iter()
        .map(|life| ((life.address, life.born_ns), life.event_index))
        .collect();
    let moves = all.iter().enumerate();
    moves
        .filter(|(_, event)| event.kind == EventKind::Move as u32)
        .filter_map(|(index, event)| {
            let origin = by_birth.get(&(event.address, event.time_ns))?;
            Some((index as u32, *origin as u32))
        })
        .collect()
}

/// The warnings for the reader.
fn warnings_of(recording: &Recording, events_lost: u32) -> Vec<String> {
    let header = &recording.header;
    let mut warnings = Vec::new();
    if header.flags & flags::EXECED != 0 {
        warnings.push(format!(
            "the program replaced itself by {}, which was not profiled; record that one instead",
            text(&header.exec_path)
        ));
    }
    if header.forks > 0 {
        let children = match header.forks {
            1 => "a child process was".to_owned(),
            n => format!("{n} child processes were"),
        };
        warnings.push(format!("{children} not profiled"));
    }
    if header.flags & flags::FULL != 0 {
        warnings.push("the recording is full: memory mapped late has no counts".to_owned());
    }
    if events_lost > 0 {
        warnings.push(format!(
            "{events_lost} allocation events did not fit: their memory is unnamed"
        ));
    }
    if header.counted == 0 {
        warnings.push("nothing was counted: the program made too few accesses".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests;
