// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unit of estimation: a region of a site, or a part of one.

use super::range::{Doubt, doubted, minus, sum};
use crate::plan::{Estimate, Why};

/// A 2 MiB region of a site at its recorded alignment, or a shorter end of the site.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    /// Index of the site in the profile.
    pub site: u32,
    pub offset: u64,
    pub length: u64,
    /// All page walks, including those of rows that are huge already.
    pub misses: f64,
    /// Page walks that huge pages avert, and those that remain.
    pub averted: f64,
    pub left: f64,
    /// The averted page walks that belong to sweeps over memory.
    pub swept: f64,
    /// Sampling variance of the averted misses.
    pub noise: f64,
    /// Half an 80 % interval of the averted misses divided by their number: sampling error.
    pub error: f64,
    /// Time of the averted walks with everything huge, plus the averted second-level hits, ns;
    /// without sampling error.
    pub benefit: Estimate,
    /// The part of the second-level hits in `benefit`.
    pub hits: Estimate,
    /// Time to make it huge, minus the 4 KiB faults that it saves, ns.
    pub time: Estimate,
    /// Cost of the memory that it wastes, ns.
    pub bloat: f64,
    pub touched: f64,
    /// Bytes that are huge already.
    pub huge: f64,
    /// Why it cannot be huge, independent of cost.
    pub barred: Option<Why>,
}

impl Chunk {
    /// Returns a chunk without counts.
    pub fn empty(site: u32, offset: u64, length: u64) -> Chunk {
        Chunk {
            site,
            offset,
            length,
            misses: 0.0,
            averted: 0.0,
            left: 0.0,
            swept: 0.0,
            noise: 0.0,
            error: 0.0,
            benefit: Estimate::exact(0.0),
            hits: Estimate::exact(0.0),
            time: Estimate::exact(0.0),
            bloat: 0.0,
            touched: 0.0,
            huge: 0.0,
            barred: None,
        }
    }

    /// Returns the cost as plans print it, ns.
    pub fn cost(&self) -> f64 {
        self.time.median + self.bloat
    }

    /// Whether it has events that huge pages could avert: misses, second-level hits, or 4 KiB
    /// faults.
    pub fn is_used(&self) -> bool {
        self.misses > 0.0 || self.hits.median > 0.0 || self.time.median < 0.0
    }

    /// Whether most of it is huge without a plan.
    pub fn is_huge_already(&self) -> bool {
        self.huge * 2.0 > self.length as f64
    }

    /// Adds the second-level hits to the benefit. Their number is so large that only the walks'
    /// part of the sampling error remains.
    pub fn add_hits(&mut self) {
        let walks = self.benefit.median;
        self.benefit = sum([self.benefit, self.hits].into_iter());
        if self.benefit.median > 0.0 {
            let part = walks / self.benefit.median;
            self.error *= part;
            self.noise *= part.powi(2);
        }
    }

    /// Returns its benefit with its sampling error and `doubts`, minus its expected cost, ns.
    pub fn net(&self, doubts: &[Doubt]) -> Estimate {
        let own = Doubt::of_error(self.error);
        let all: Vec<Doubt> = [own].iter().chain(doubts).copied().collect();
        let benefit = doubted(self.benefit.median, &all);
        minus(benefit, Estimate::exact(self.cost()))
    }
}

/// Returns the chunks that can be huge.
pub(super) fn eligible(chunks: &[Chunk]) -> impl Iterator<Item = &Chunk> {
    chunks.iter().filter(|chunk| chunk.barred.is_none())
}
