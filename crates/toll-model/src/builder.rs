// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds a profile from single observations.
//!
//! Counts are kept per cell: a page for most sites, 64 KiB for those above 256 MiB. If a process
//! has more cells than [`MAX_CELLS`], the cell size doubles until they fit, up to 256 KiB: a
//! process of 64 GiB that touches everything needs 262,144 of them. A cell records each of its
//! touched pages.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::profile::{FORMAT, Place, Profile, Program, Row, SiteRows, Source, VERSION};
use crate::site::{Frame, Level, Site, SiteKind};
use crate::{PAGE, REGION};

/// Sites above this length start with cells of [`BIG_CELL`].
const BIG_SITE: u64 = 256 << 20;
/// Cell of a big site, as a power of two of pages (64 KiB).
const BIG_CELL: u8 = 4;
/// The coarsest cell, as a power of two of pages: one bit of a u64 per page (256 KiB).
const MAX_CELL: u8 = 6;
/// Maximum number of cells of a profile before the cell size doubles.
const MAX_CELLS: usize = 200_000;
/// Neighbours are merged if their counts differ by less than this share of the larger.
const SAME: f64 = 0.02;

/// Observations at one place. Means are weighted by misses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    pub accesses: f64,
    pub misses: f64,
    /// As [`Row::misses_huge`].
    pub misses_huge: Option<f64>,
    /// As [`Row::l2_spared`].
    pub l2_spared: f64,
    /// As [`Row::reuse_log2`].
    pub reuse_log2: Option<f32>,
    /// As [`Row::dependent`].
    pub dependent: Option<f32>,
    pub huge: bool,
}

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

/// A weighted mean, for values that some observations lack.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f32>, weight: f64) {
        if let Some(value) = value {
            // An observation without a miss has a small but non-zero weight.
            let weight = weight.max(1e-9);
            self.sum += f64::from(value) * weight;
            self.weight += weight;
        }
    }

    fn merge(&mut self, other: Mean) {
        self.sum += other.sum;
        self.weight += other.weight;
    }

    fn get(self) -> Option<f32> {
        (self.weight > 0.0).then(|| (self.sum / self.weight) as f32)
    }
}

/// Counts of `1 << cell` pages.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    accesses: f64,
    misses: f64,
    misses_huge: f64,
    l2_spared: f64,
    reuse: Mean,
    dependent: Mean,
    /// One bit per page.
    touched: u64,
    huge: bool,
    knows_huge: bool,
}

impl Cell {
    fn add(&mut self, counts: &Counts, share: f64, touched: u64) {
        self.accesses += counts.accesses * share;
        self.misses += counts.misses * share;
        self.misses_huge += counts.misses_huge.unwrap_or(0.0) * share;
        self.l2_spared += counts.l2_spared * share;
        self.knows_huge |= counts.misses_huge.is_some();
        self.reuse.add(counts.reuse_log2, counts.misses * share);
        self.dependent.add(counts.dependent, counts.misses * share);
        self.huge |= counts.huge;
        self.touched |= touched;
    }

    /// Adds a finer cell that starts at page `page` of this one.
    fn merge(&mut self, other: &Cell, page: u32) {
        self.accesses += other.accesses;
        self.misses += other.misses;
        self.misses_huge += other.misses_huge;
        self.l2_spared += other.l2_spared;
        self.knows_huge |= other.knows_huge;
        self.reuse.merge(other.reuse);
        self.dependent.merge(other.dependent);
        self.huge |= other.huge;
        self.touched |= other.touched << page;
    }

    fn row(&self, offset: u64, length: u64) -> Row {
        Row {
            offset,
            length,
            accesses: self.accesses,
            misses: self.misses,
            misses_huge: self.knows_huge.then_some(self.misses_huge),
            l2_spared: self.l2_spared,
            reuse_log2: self.reuse.get(),
            dependent: self.dependent.get(),
            touched_pages: self.touched.count_ones(),
            huge: self.huge,
        }
    }
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
        if first >= last || !is_sound(counts) {
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
                push(&mut rows, &growing, number, &cell);
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
            footprint,
            warnings: meta.warnings,
            sites,
        }
    }
}

/// Appends a cell's row, or merges it with its left neighbour if both are equal.
fn push(rows: &mut Vec<Row>, growing: &Growing, number: u64, cell: &Cell) {
    let size = PAGE << growing.cell;
    let offset = number * size;
    let end = growing.site.length.next_multiple_of(PAGE);
    let row = cell.row(offset, size.min(end - offset));
    match rows.last_mut() {
        Some(last) if may_merge(last, &row) => join(last, &row),
        _ => rows.push(row),
    }
}

fn touched_bytes(sites: &[SiteRows]) -> u64 {
    let rows = sites.iter().flat_map(|site| &site.rows);
    rows.map(|row| u64::from(row.touched_pages)).sum::<u64>() * PAGE
}

/// Rounds counts to three decimals and means to two: more only makes files longer.
fn tidy(row: &mut Row) {
    let thousandths = |count: f64| match count * 1000.0 {
        scaled if scaled.is_finite() => scaled.round() / 1000.0,
        _ => count,
    };
    let hundredths = |mean: f32| (mean * 100.0).round() / 100.0;
    row.accesses = thousandths(row.accesses);
    row.misses = thousandths(row.misses);
    row.misses_huge = row.misses_huge.map(thousandths);
    row.l2_spared = thousandths(row.l2_spared);
    row.reuse_log2 = row.reuse_log2.map(hundredths);
    row.dependent = row.dependent.map(|share| hundredths(share).clamp(0.0, 1.0));
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

/// Whether all counts are finite and not negative: invalid ones are dropped, not averaged.
fn is_sound(counts: &Counts) -> bool {
    let values = [
        counts.accesses,
        counts.misses,
        counts.misses_huge.unwrap_or(0.0),
        counts.l2_spared,
        f64::from(counts.reuse_log2.unwrap_or(0.0)),
        f64::from(counts.dependent.unwrap_or(0.0)),
    ];
    values
        .iter()
        .all(|value| value.is_finite() && *value >= 0.0)
}

/// Whether two neighbours are equal per page, so that one row can represent both. Rows are limited
/// to 256 KiB, which keeps the error small for a row that crosses a region's border.
fn may_merge(left: &Row, right: &Row) -> bool {
    let pages = [left.pages() as f64, right.pages() as f64];
    let same = |a: f64, b: f64| {
        let (a, b) = (a / pages[0], b / pages[1]);
        (a - b).abs() <= SAME * a.max(b)
    };
    let alike = |a: Option<f32>, b: Option<f32>, within: f32| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= within,
        (None, None) => true,
        _ => false,
    };
    left.end() == right.offset
        && left.length + right.length <= PAGE << MAX_CELL
        && left.huge == right.huge
        && left.misses_huge.is_some() == right.misses_huge.is_some()
        && same(left.misses, right.misses)
        && same(left.accesses, right.accesses)
        && same(
            left.misses_huge.unwrap_or(0.0),
            right.misses_huge.unwrap_or(0.0),
        )
        && same(left.l2_spared, right.l2_spared)
        && same(left.touched_pages.into(), right.touched_pages.into())
        && alike(left.reuse_log2, right.reuse_log2, 0.25)
        && alike(left.dependent, right.dependent, 0.05)
}

/// Merges `right` into `left`, its left neighbour.
fn join(left: &mut Row, right: &Row) {
    let part = match left.misses + right.misses {
        0.0 => 0.5,
        misses => (right.misses / misses) as f32,
    };
    let mean = |a: Option<f32>, b: Option<f32>| Some(a? * (1.0 - part) + b? * part);
    left.reuse_log2 = mean(left.reuse_log2, right.reuse_log2);
    left.dependent = mean(left.dependent, right.dependent);
    left.misses_huge = left
        .misses_huge
        .map(|a| a + right.misses_huge.unwrap_or(0.0));
    left.l2_spared += right.l2_spared;
    left.length += right.length;
    left.accesses += right.accesses;
    left.misses += right.misses;
    left.touched_pages += right.touched_pages;
}
