// SPDX-License-Identifier: MIT OR Apache-2.0
//! Error of the sampled count of one region, given those of its neighbours.
//!
//! Counts of single regions are noisy; the regions of a site inform each other. With rates `r` per
//! touched page, their mean `m` and a sampling variance `phi m / e` at `e` touched pages, the
//! variance of the rates beyond sampling is the variance `t` between regions, and a region's best
//! estimate is `m + w (r - m)`, `w = t e / (t e + phi m)`: the mean of the posterior of a
//! gamma-Poisson model (empirical Bayes). A uniformly hot block gets equal estimates with a small
//! error, a skewed one keeps its own.

use super::chunk::Chunk;
use super::range::{Z80, times};
use crate::plan::Why;
use crate::profile::{Profile, Row, Source};

/// Variance of counts sampled in time windows relative to that of a Poisson process.
const CLUSTERED: f64 = 4.0;
/// A block counts as uniform unless its regions differ by this many standard deviations of the
/// sampling error: half of all uniform blocks look slightly uneven.
const UNEVEN: f64 = 2.0;
/// log2 of the mean reuse distance in a sweep: seven of eight misses hit the page-table line of the
/// previous one (32 KiB, 2^15), the eighth uses a line that was evicted long ago.
const SWEEP_BITS: f64 = 17.0;

/// Sampling method of counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampling {
    /// Observations per miss.
    scale: f64,
    /// Variance relative to that of a Poisson process.
    clustered: f64,
    /// Whether observations come in time windows; a sweep falls into a single window.
    windows: bool,
    /// log2 of the mean reuse distance of uniform accesses to the whole footprint.
    even_bits: f64,
}

impl Sampling {
    /// Returns the sampling of a profile; `None` if the whole run was observed.
    pub fn of(profile: &Profile) -> Option<Sampling> {
        let misses = profile.misses();
        let windows = profile.source == Source::Sim;
        if windows && profile.sampled >= 0.999 || misses <= 0.0 {
            return None;
        }
        Some(Sampling {
            scale: profile.observations as f64 / misses,
            clustered: if windows { CLUSTERED } else { 1.0 },
            windows,
            even_bits: (profile.footprint.max(1) as f64).log2() - std::f64::consts::LOG2_E,
        })
    }

    /// Returns the share of a row's misses in sweeps, which a window observes completely or not at
    /// all.
    pub fn swept(&self, row: &Row) -> f64 {
        match row.reuse_log2 {
            Some(bits) if self.windows && self.even_bits > SWEEP_BITS => {
                let below = self.even_bits - f64::from(bits);
                (below / (self.even_bits - SWEEP_BITS)).clamp(0.0, 1.0)
            }
            _ => 0.0,
        }
    }

    /// Returns the variance of a chunk's averted misses. A sweep misses each page once: all of its
    /// misses in a region, up to the number of pages there, are one observation.
    fn variance(&self, chunk: &Chunk) -> f64 {
        if self.scale <= 0.0 {
            return 0.0;
        }
        let counts = (chunk.averted + 2.0 * chunk.left) * self.scale;
        let swept = chunk.swept * self.scale;
        let observed = self.clustered * counts + swept * swept.min(pages(chunk));
        observed / self.scale.powi(2)
    }
}

fn pages(chunk: &Chunk) -> f64 {
    chunk.touched.max(1.0)
}

/// Sets the error of every chunk, and shrinks the counts of a site's chunks towards their mean.
/// `chunks` are of one site; their sums do not change.
pub(super) fn shrink(chunks: &mut [Chunk], sampling: &Sampling) {
    for chunk in chunks.iter_mut() {
        chunk.noise = sampling.variance(chunk);
    }
    let open = |chunk: &&mut Chunk| chunk.barred != Some(Why::AlreadyHuge);
    let mut chunks: Vec<&mut Chunk> = chunks.iter_mut().filter(open).collect();
    let block = Block::of(&chunks);
    if block.rate <= 0.0 {
        return;
    }
    let (before, benefit) = totals(&chunks);
    for chunk in &mut chunks {
        block.apply(chunk);
    }
    // With equal regions this changes nothing.
    let (after, moved) = totals(&chunks);
    let keep = |before: f64, after: f64| if after > 0.0 { before / after } else { 1.0 };
    for chunk in chunks {
        chunk.averted *= keep(before, after);
        chunk.benefit = times(chunk.benefit, keep(benefit, moved));
    }
}

fn totals(chunks: &[&mut Chunk]) -> (f64, f64) {
    let add = |(averted, benefit): (f64, f64), chunk: &&mut Chunk| {
        (averted + chunk.averted, benefit + chunk.benefit.median)
    };
    chunks.iter().fold((0.0, 0.0), add)
}

/// Common statistics of a site's regions.
struct Block {
    /// Touched pages of all regions.
    pages: f64,
    /// Averted misses, misses left and benefit per touched page.
    rate: f64,
    left: f64,
    benefit: [f64; 3],
    /// Sampling variance of a count divided by its mean.
    phi: f64,
    /// Variance of rates beyond sampling.
    between: f64,
}

impl Block {
    fn of(chunks: &[&mut Chunk]) -> Block {
        let sum = |of: fn(&Chunk) -> f64| chunks.iter().map(|chunk| of(chunk)).sum::<f64>();
        let (all, averted) = (sum(pages), sum(|chunk| chunk.averted));
        let mut block = Block {
            pages: all,
            rate: averted / all.max(1.0),
            left: sum(|chunk| chunk.left) / all.max(1.0),
            benefit: [
                sum(|chunk| chunk.benefit.low) / all.max(1.0),
                sum(|chunk| chunk.benefit.median) / all.max(1.0),
                sum(|chunk| chunk.benefit.high) / all.max(1.0),
            ],
            phi: sum(|chunk| chunk.noise) / averted.max(f64::MIN_POSITIVE),
            between: 0.0,
        };
        let others = chunks.len() as f64 - 1.0;
        if others >= 1.0 {
            let off = |chunk: &&mut Chunk| {
                pages(chunk) * (chunk.averted / pages(chunk) - block.rate).powi(2)
            };
            let seen: f64 = chunks.iter().map(off).sum();
            let noise = others * block.phi * block.rate;
            let spread = all - sum(|chunk| pages(chunk).powi(2)) / all;
            if seen > noise * (1.0 + UNEVEN * (2.0 / others).sqrt()) {
                block.between = (seen - noise) / spread;
            }
        } else {
            // No other region to compare with.
            block.between = f64::INFINITY;
        }
        block
    }

    /// Shrinks a chunk towards the mean and computes the new error.
    fn apply(&self, chunk: &mut Chunk) {
        let pages = pages(chunk);
        let own = match self.between.is_finite() {
            true if self.between > 0.0 => {
                let between = self.between * pages;
                between / (between + self.phi * self.rate)
            }
            true => 0.0,
            false => 1.0,
        };
        let moved = |value: f64, mean: f64| own * value + (1.0 - own) * mean * pages;
        chunk.averted = moved(chunk.averted, self.rate);
        chunk.left = moved(chunk.left, self.left);
        chunk.benefit.low = moved(chunk.benefit.low, self.benefit[0]);
        chunk.benefit.median = moved(chunk.benefit.median, self.benefit[1]);
        chunk.benefit.high = moved(chunk.benefit.high, self.benefit[2]);
        // Of the posterior, and of the shared mean.
        let variance = own * self.phi * chunk.averted
            + ((1.0 - own) * pages).powi(2) * self.phi * self.rate / self.pages;
        chunk.error = match chunk.averted > 0.0 {
            true => Z80 * variance.sqrt() / chunk.averted,
            false => 0.0,
        };
    }
}
