// SPDX-License-Identifier: MIT OR Apache-2.0
//! From single observations to a profile.
//!
//! Counts are kept per cell: a page for most anchors, 64 KiB for those above
//! 256 MiB. Where a process has more cells than [`MAX_CELLS`], all cells double
//! until they fit, up to 256 KiB: a process of 64 GiB that touches everything
//! needs 262,144 of them. A cell remembers each of its pages that was touched.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::anchor::{Anchor, AnchorKind, Frame, Level};
use crate::profile::{AnchorRows, FORMAT, Place, Profile, Program, Row, Source, VERSION};
use crate::{PAGE, REGION};

/// Anchors above this length start with cells of [`BIG_CELL`].
const BIG_ANCHOR: u64 = 256 << 20;
/// Cell of a big anchor, as a power of two of pages (64 KiB).
const BIG_CELL: u8 = 4;
/// The coarsest cell, as a power of two of pages: one bit of a u64 per page (256 KiB).
const MAX_CELL: u8 = 6;
/// Cells that a profile may have before all of them double.
const MAX_CELLS: usize = 200_000;
/// Neighbours merge if their counts differ by less than this share of the larger.
const SAME: f64 = 0.02;

/// What was observed at one place. Weights of means are the misses.
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

/// Everything in a profile that is not a count.
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
    /// Data footprint in bytes if the source knows it; else the touched pages are counted.
    pub footprint: Option<u64>,
    pub warnings: Vec<String>,
}

/// A mean with a weight, for values that not every observation has.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, value: Option<f32>, weight: f64) {
        if let Some(value) = value {
            // An observation without a miss says little, but more than nothing.
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

    /// Adds a finer cell whose first page is page `page` of this one.
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

/// Where an anchor began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Address {
    Unknown,
    At(u64),
    /// At one address and then at another.
    Moved,
}

/// One anchor and the size of its cells.
struct Growing {
    anchor: Anchor,
    freed: bool,
    address: Address,
    places: Vec<Place>,
    /// Power of two of pages per cell.
    cell: u8,
}

/// Builds a [`Profile`] from observations in any order.
#[derive(Default)]
pub struct ProfileBuilder {
    anchors: Vec<Growing>,
    /// Ids by hash of the kind; a collision goes on at the next number.
    ids: HashMap<u64, u32>,
    /// The frames of all anchors, once each.
    frames: HashSet<Arc<Frame>>,
    /// Cells by anchor and number from its start: sorted, which is the order of rows.
    cells: BTreeMap<(u32, u64), Cell>,
    /// The finest cell that is still allowed, as a power of two of pages.
    finest: u8,
}

impl ProfileBuilder {
    pub fn new() -> ProfileBuilder {
        ProfileBuilder::default()
    }

    /// The id of the anchor of this kind, which is new or known already. A known one
    /// keeps its alignment, grows to the larger length, and falls to the weaker level.
    pub fn anchor(
        &mut self,
        mut kind: AnchorKind,
        length: u64,
        misalignment: u64,
        level: Level,
    ) -> u32 {
        let length = length.min(crate::anchor::MAX_LENGTH);
        let mut hash = hash_of(&kind);
        while let Some(&id) = self.ids.get(&hash) {
            let anchor = &mut self.anchors[id as usize].anchor;
            if anchor.kind == kind {
                anchor.length = anchor.length.max(length);
                anchor.level = anchor.level.max(level);
                return id;
            }
            hash = hash.wrapping_add(1);
        }
        let id = u32::try_from(self.anchors.len()).expect("fewer than 2^32 anchors");
        self.ids.insert(hash, id);
        if let AnchorKind::Alloc { frames, .. } = &mut kind {
            frames.iter_mut().for_each(|frame| self.share(frame));
        }
        let big = if length > BIG_ANCHOR { BIG_CELL } else { 0 };
        self.anchors.push(Growing {
            anchor: Anchor {
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

    /// Replaces a frame by the equal one that is held already.
    fn share(&mut self, frame: &mut Arc<Frame>) {
        match self.frames.get(frame) {
            Some(held) => *frame = Arc::clone(held),
            None => {
                self.frames.insert(Arc::clone(frame));
            }
        }
    }

    /// Marks an anchor as freed before the end of the run.
    pub fn freed(&mut self, anchor: u32) {
        self.anchors[anchor as usize].freed = true;
    }

    /// Says at which address an anchor's first byte lay.
    pub fn address(&mut self, anchor: u32, address: u64) {
        let known = &mut self.anchors[anchor as usize].address;
        *known = match *known {
            Address::Unknown => Address::At(address),
            Address::At(before) if before == address => Address::At(address),
            Address::At(_) | Address::Moved => Address::Moved,
        };
    }

    /// Says which mapping a byte interval of an anchor lay in. The first to say so of a byte
    /// is believed.
    pub fn place(&mut self, anchor: u32, place: Place) {
        let places = &mut self.anchors[anchor as usize].places;
        let at = places.partition_point(|other| other.offset < place.offset);
        let after = |other: &Place| other.offset + other.length > place.offset;
        let before = |other: &Place| other.offset < place.offset + place.length;
        let clear = !places[..at].last().is_some_and(after) && !places.get(at).is_some_and(before);
        if clear && place.length > 0 {
            places.insert(at, place);
        }
    }

    /// Counts what was observed in the page at `offset` bytes from the anchor's start;
    /// the page was touched. An anchor grows to hold it.
    ///
    /// # Panics
    /// If `anchor` did not come from [`ProfileBuilder::anchor`] of this builder.
    pub fn count(&mut self, anchor: u32, offset: u64, counts: &Counts) {
        self.count_span(anchor, offset / PAGE * PAGE, PAGE, counts);
    }

    /// Counts what was observed evenly in `length` bytes from `offset`, every page of it touched.
    ///
    /// # Panics
    /// If `anchor` did not come from [`ProfileBuilder::anchor`] of this builder.
    pub fn count_span(&mut self, anchor: u32, offset: u64, length: u64, counts: &Counts) {
        let end = offset.saturating_add(length).min(crate::anchor::MAX_LENGTH);
        let (first, last) = (offset / PAGE, end.div_ceil(PAGE));
        if first >= last || !is_sound(counts) {
            return;
        }
        let growing = &mut self.anchors[anchor as usize];
        growing.anchor.length = growing.anchor.length.max(end);
        let mut page = first;
        while page < last {
            let number = page >> growing.cell;
            let stop = ((number + 1) << growing.cell).min(last);
            let touched = bits(page - (number << growing.cell), stop - page);
            let share = (stop - page) as f64 / (last - first) as f64;
            let cell = self.cells.entry((anchor, number)).or_default();
            cell.add(counts, share, touched);
            page = stop;
        }
        while self.cells.len() > MAX_CELLS && self.finest < MAX_CELL {
            self.coarsen();
        }
    }

    /// Doubles the finest cells.
    fn coarsen(&mut self) {
        self.finest += 1;
        let mut coarse: BTreeMap<(u32, u64), Cell> = BTreeMap::new();
        for ((id, number), cell) in std::mem::take(&mut self.cells) {
            let size = self.anchors[id as usize].cell;
            let doubles = size < self.finest;
            let page = if doubles { (number & 1) << size } else { 0 };
            let number = if doubles { number >> 1 } else { number };
            coarse
                .entry((id, number))
                .or_default()
                .merge(&cell, page as u32);
        }
        self.cells = coarse;
        for growing in &mut self.anchors {
            growing.cell = growing.cell.max(self.finest);
        }
    }

    /// The profile: equal neighbours merged, anchors without a count left out.
    pub fn finish(self, meta: Meta) -> Profile {
        drop(self.ids);
        let mut cells = self.cells.into_iter().peekable();
        let mut anchors = Vec::with_capacity(self.anchors.len());
        for growing in self.anchors {
            let mut rows = Vec::new();
            while let Some(((_, number), cell)) =
                cells.next_if(|((id, _), _)| *id == growing.anchor.id)
            {
                push(&mut rows, &growing, number, &cell);
            }
            rows.shrink_to_fit();
            rows.iter_mut().for_each(tidy);
            if !rows.is_empty() {
                anchors.push(AnchorRows {
                    anchor: growing.anchor,
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
        let footprint = meta.footprint.unwrap_or_else(|| touched_bytes(&anchors));
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
            anchors,
        }
    }
}

/// Appends a cell's row, or adds it to its left neighbour where both say the same.
fn push(rows: &mut Vec<Row>, growing: &Growing, number: u64, cell: &Cell) {
    let size = PAGE << growing.cell;
    let offset = number * size;
    let end = growing.anchor.length.next_multiple_of(PAGE);
    let row = cell.row(offset, size.min(end - offset));
    match rows.last_mut() {
        Some(last) if may_merge(last, &row) => join(last, &row),
        _ => rows.push(row),
    }
}

fn touched_bytes(anchors: &[AnchorRows]) -> u64 {
    let rows = anchors.iter().flat_map(|anchor| &anchor.rows);
    rows.map(|row| u64::from(row.touched_pages)).sum::<u64>() * PAGE
}

/// Keeps three digits behind the point of counts and two of means: more only makes files longer.
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

fn hash_of(kind: &AnchorKind) -> u64 {
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    hasher.finish()
}

/// `count` bits from bit `first`, of at most 64.
fn bits(first: u64, count: u64) -> u64 {
    (u64::MAX >> (64 - count)) << first
}

/// Whether all counts are finite and not negative: others are dropped, never averaged in.
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

/// Whether two neighbours say the same, page for page: then one row says it.
/// Rows stop at 256 KiB, so that a region's share of a row that lies over its border is small.
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

/// Adds `right` to `left`, its left neighbour.
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
