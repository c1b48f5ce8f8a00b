// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds a profile from single observations.
//!
//! Counts are kept per cell: a page for most sites, 64 KiB for those above 256 MiB. If a process
//! has more cells than [`MAX_CELLS`], the cell size doubles until they fit, up to 256 KiB: a
//! process of 64 GiB that touches everything needs 262,144 of them. A cell records each of its
//! touched pages.

mod cell;
mod rows;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use self::cell::{Cell, MAX_CELL};
use self::rows::{push, tidy};
use crate::profile::{FORMAT, Place, Profile, Program, Row, SiteRows, Source, VERSION};
use crate::site::{Frame, Level, Site, SiteKind};
use crate::{PAGE, REGION};

pub use self::cell::Counts;

/// Sites above this length start with cells of [`BIG_CELL`].
const BIG_SITE: u64 = 256 << 20;
/// Cell of a big site, as a power of two of pages (64 KiB).
const BIG_CELL: u8 = 4;
/// Maximum number of cells of a profile before the cell size doubles.
const MAX_CELLS: usize = 200_000;

/// Everything in a profile except counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Meta {
    pub source: Source,
    pub source_detail: String,
    pub program: Program,
    pub command: Vec<String>,
    pub complete: bool,
    pub sampled: f64,
    pub observations: u64,
    pub instructions: Option<u64>,
    pub native_ns: Option<u64>,
    /// Data footprint in bytes if the source knows it; otherwise the touched pages are counted.
    pub footprint: Option<u64>,
    pub warnings: Vec<String>,
}

/// Start address of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Address {
    Unknown,
    At(u64),
    /// At several addresses over time.
    Moved,
}

/// A site with its cell size.
struct Growing {
    site: Site,
    freed: bool,
    address: Address,
    places: Vec<Place>,
    /// Power of two of pages per cell.
    cell: u8,
}

impl Growing {
    /// Returns the row of one of its cells.
    fn row(&self, number: u64, cell: &Cell) -> Row {
        let size = PAGE << self.cell;
        let offset = number * size;
        let end = self.site.length.next_multiple_of(PAGE);
        cell.row(offset, size.min(end - offset))
    }
}

/// Builds a [`Profile`] from observations in any order.
#[derive(Default)]
pub struct ProfileBuilder {
    sites: Vec<Growing>,
    /// Ids by hash of the kind; on a collision the next number is used.
    ids: HashMap<u64, u32>,
    /// The frames of all sites, deduplicated.
    frames: HashSet<Arc<Frame>>,
    /// Cells by site and index from its start, in the order of rows.
    cells: BTreeMap<(u32, u64), Cell>,
    /// The minimum cell size, as a power of two of pages.
    finest: u8,
}

impl ProfileBuilder {
    pub fn new() -> ProfileBuilder {
        ProfileBuilder::default()
    }

    /// Returns the id of the site of this kind and adds it if it is new. An existing one keeps its
    /// alignment, grows to the larger length, and takes the weaker level.
    pub fn site(
        &mut self,
        mut kind: SiteKind,
        length: u64,
        misalignment: u64,
        level: Level,
    ) -> u32 {
        let length = length.min(crate::site::MAX_LENGTH);
        let mut hash = hash_of(&kind);
        while let Some(&id) = self.ids.get(&hash) {
            let site = &mut self.sites[id as usize].site;
            if site.kind == kind {
                site.length = site.length.max(length);
                site.level = site.level.max(level);
                return id;
            }
            hash = hash.wrapping_add(1);
        }
        let id = u32::try_from(self.sites.len()).expect("fewer than 2^32 sites");
        self.ids.insert(hash, id);
        if let SiteKind::Alloc { frames, .. } = &mut kind {
            frames.iter_mut().for_each(|frame| self.share(frame));
        }
        let big = if length > BIG_SITE { BIG_CELL } else { 0 };
        self.sites.push(Growing {
            site: Site {
                id,
                kind,
                length,
                misalignment: misalignment % REGION,
                level,
            },
            freed: false,
            address: Address::Unknown,
            places: Vec::new(),
            cell: self.finest.max(big),
        });
        id
    }

    /// Replaces a frame by an equal stored one.
    fn share(&mut self, frame: &mut Arc<Frame>) {
        match self.frames.get(frame) {
            Some(held) => *frame = Arc::clone(held),
            None => {
                self.frames.insert(Arc::clone(frame));
            }
        }
    }

    /// Marks a site as freed before the end of the run.
    pub fn freed(&mut self, site: u32) {
        self.sites[site as usize].freed = true;
    }

    /// Records the address of a site's first byte.
    pub fn address(&mut self, site: u32, address: u64) {
        let known = &mut self.sites[site as usize].address;
        *known = match *known {
            Address::Unknown => Address::At(address),
            Address::At(before) if before == address => Address::At(address),
            Address::At(_) | Address::Moved => Address::Moved,
        };
    }

    /// Records the mapping of a byte interval of a site. The first record of a byte wins.
    pub fn place(&mut self, site: u32, place: Place) {
        let places = &mut self.sites[site as usize].places;
        let at = places.partition_point(|other| other.offset < place.offset);
        let after = |other: &Place| other.offset + other.length > place.offset;
        let before = |other: &Place| other.offset < place.offset + place.length;
        let clear = !places[..at].last().is_some_and(after) && !places.get(at).is_some_and(before);
        if clear && place.length > 0 {
            places.insert(at, place);
        }
    }

    /// Counts an observation in the page at `offset` bytes from the site's start and marks the page
    /// as touched. A site grows to include it.
    ///
    /// # Panics
    /// If `site` was not returned by [`ProfileBuilder::site`] of this builder.
    pub fn count(&mut self, site: u32, offset: u64, counts: &Counts) {
        self.count_span(site, offset / PAGE * PAGE, PAGE, counts);
    }

    /// Counts an observation spread evenly over `length` bytes from `offset`, with every page
    /// touched.
    ///
    /// # Panics
    /// If `site` was not returned by [`ProfileBuilder::site`] of this builder.
    pub fn count_span(&mut self, site: u32, offset: u64, length: u64, counts: &Counts) {
        let end = offset.saturating_add(length).min(crate::site::MAX_LENGTH);
        let (first, last) = (offset / PAGE, end.div_ceil(PAGE));
        if first >= last || !counts.is_sound() {
            return;
        }
        let growing = &mut self.sites[site as usize];
        growing.site.length = growing.site.length.max(end);
        let mut page = first;
        while page < last {
            let number = page >> growing.cell;
            let stop = ((number + 1) << growing.cell).min(last);
            let touched = bits(page - (number << growing.cell), stop - page);
            let share = (stop - page) as f64 / (last - first) as f64;
            let cell = self.cells.entry((site, number)).or_default();
            cell.add(counts, share, touched);
            page = stop;
        }
        while self.cells.len() > MAX_CELLS && self.finest < MAX_CELL {
            self.coarsen();
        }
    }

    /// Doubles the size of the smallest cells.
    fn coarsen(&mut self) {
        self.finest += 1;
        let mut coarse: BTreeMap<(u32, u64), Cell> = BTreeMap::new();
        for ((id, number), cell) in std::mem::take(&mut self.cells) {
            let size = self.sites[id as usize].cell;
            let doubles = size < self.finest;
            let page = if doubles { (number & 1) << size } else { 0 };
            let number = if doubles { number >> 1 } else { number };
            coarse
                .entry((id, number))
                .or_default()
                .merge(&cell, page as u32);
        }
        self.cells = coarse;
        for growing in &mut self.sites {
            growing.cell = growing.cell.max(self.finest);
        }
    }

    /// Returns the profile with equal neighbours merged; sites without a count are left out.
    pub fn finish(self, meta: Meta) -> Profile {
        drop(self.ids);
        let mut cells = self.cells.into_iter().peekable();
        let mut sites = Vec::with_capacity(self.sites.len());
        for growing in self.sites {
            let mut rows = Vec::new();
            while let Some(((_, number), cell)) =
                cells.next_if(|((id, _), _)| *id == growing.site.id)
            {
                push(&mut rows, growing.row(number, &cell));
            }
            rows.shrink_to_fit();
            rows.iter_mut().for_each(tidy);
            if !rows.is_empty() {
                sites.push(SiteRows {
                    site: growing.site,
                    rows,
                    places: growing.places,
                    address: match growing.address {
                        Address::At(address) => Some(address),
                        Address::Unknown | Address::Moved => None,
                    },
                    freed: growing.freed,
                });
            }
        }
        let footprint = meta.footprint.unwrap_or_else(|| touched_bytes(&sites));
        Profile {
            format: FORMAT.to_owned(),
            version: VERSION,
            source: meta.source,
            source_detail: meta.source_detail,
            program: meta.program,
            command: meta.command,
            complete: meta.complete,
            sampled: meta.sampled,
            observations: meta.observations,
            instructions: meta.instructions,
            native_ns: meta.native_ns,
            native_cpu_ns: None,
            footprint,
            warnings: meta.warnings,
            sites,
            stacks: Vec::new(),
        }
    }
}

fn touched_bytes(sites: &[SiteRows]) -> u64 {
    let rows = sites.iter().flat_map(|site| &site.rows);
    rows.map(|row| u64::from(row.touched_pages)).sum::<u64>() * PAGE
}

fn hash_of(kind: &SiteKind) -> u64 {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    hasher.finish()
}

/// Returns `count` bits starting at bit `first`; at most 64.
fn bits(first: u64, count: u64) -> u64 {
    (u64::MAX >> (64 - count)) << first
}
