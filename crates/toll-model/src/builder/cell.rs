// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts of some pages.

use crate::profile::Row;

/// The coarsest cell, as a power of two of pages: one bit of a u64 per page (256 KiB).
pub(super) const MAX_CELL: u8 = 6;

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

impl Counts {
    /// Whether all counts are finite and not negative: invalid ones are dropped, not averaged.
    pub(super) fn is_sound(&self) -> bool {
        let values = [
            self.accesses,
            self.misses,
            self.misses_huge.unwrap_or(0.0),
            self.l2_spared,
            f64::from(self.reuse_log2.unwrap_or(0.0)),
            f64::from(self.dependent.unwrap_or(0.0)),
        ];
        values
            .iter()
            .all(|value| value.is_finite() && *value >= 0.0)
    }
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
pub(super) struct Cell {
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
    pub fn add(&mut self, counts: &Counts, share: f64, touched: u64) {
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
    pub fn merge(&mut self, other: &Cell, page: u32) {
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

    pub fn row(&self, offset: u64, length: u64) -> Row {
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
