// SPDX-License-Identifier: MIT OR Apache-2.0
//! Additional cost of a TLB miss with 4 KiB pages over 2 MiB pages: a page walk, or a hit in the
//! second level where 2 MiB pages hit the first.
//!
//! The cost table has ns saved per *access* of a uniform random chase over a footprint. Within the
//! second level's reach every access that misses the first level hits it: that gives the cost of
//! such a hit. Beyond it, `1 - reach / footprint` of the accesses walk and the others hit; the
//! saving per access, minus the hits' part, divided by the share of accesses with a walk that huge
//! pages avert, is the cost of one averted walk. Costs are interpolated over log footprint and log
//! chains, after the grid was made monotone: a walk over more memory never costs less, nor does one
//! with fewer concurrent walks.

mod grid;

use self::grid::{End, curves, fall_with_chains, hits, interpolate};
use super::range::{Doubt, doubted};
use crate::cost::CostTable;
use crate::plan::Estimate;
use crate::profile::Row;

/// The mean log2 reuse distance in a uniform random chase is this far below log2 of its footprint:
/// stack distances are uniform over it, and the mean of log2 of a uniform variable on 0..1 is -1/ln
/// 2.
const UNIFORM_REUSE: f64 = std::f64::consts::LOG2_E;
/// Octaves by which the footprint for a known reuse distance may be off.
const REUSE_DOUBT: f64 = 0.5;

/// Share of dependent misses if the source does not know it (low, median, high).
const UNKNOWN_DEPENDENT: [f64; 3] = [0.0, 0.4, 1.0];
/// Possible error of a known share: static data flow sees one block at a time.
const DEPENDENT_DOUBT: f64 = 0.15;

/// Saved time per averted walk time. A dependent walk stalls the program, as in the chase that
/// measured the table.
const SLOPE_DEPENDENT: [f64; 3] = [0.80, 0.95, 1.05];
/// An independent walk overlaps with other work: CBMM's own data have slopes of 0.56 (mcf) to 0.89
/// (canneal) of saved time on averted walk cycles where a linear fit is adequate.
const SLOPE_INDEPENDENT: [f64; 3] = [0.56, 0.75, 0.89];

/// Cost of one averted miss by footprint and chains, monotone.
pub(super) struct Walk {
    /// log2 of the footprints, ascending.
    footprints: Vec<f64>,
    /// Costs of dependent misses (fewest chains of the grid): low, median and high per footprint.
    dependent: [Vec<f64>; 3],
    /// Costs of independent misses (most chains of the grid).
    independent: [Vec<f64>; 3],
    /// Costs of a second-level hit (low, median, high): dependent, independent.
    hits: [[f64; 3]; 2],
    /// log2 of bytes: range for the page tables of a miss with unknown reuse.
    unknown: [f64; 3],
}

impl Walk {
    /// Returns the costs for a program that touches `footprint` bytes.
    pub fn new(costs: &CostTable, footprint: u64) -> Walk {
        let mut footprints: Vec<u64> = costs.walk.iter().map(|point| point.footprint).collect();
        footprints.sort_unstable();
        footprints.dedup();
        let hits = hits(costs);
        let curves = curves(costs, [hits[0][1], hits[1][1]]);
        let read = |end: End| -> Vec<Vec<f64>> {
            let matrix = curves
                .iter()
                .map(|curve| curve.saved(&footprints, end))
                .collect();
            fall_with_chains(matrix)
        };
        let [low, median, high] = [End::Low, End::Median, End::High].map(read);
        let pick = |at: fn(&Vec<Vec<f64>>) -> Option<&Vec<f64>>| {
            [&low, &median, &high].map(|matrix| at(matrix).cloned().unwrap_or_default())
        };
        let reach = (costs.tlb.reach_4k().max(1) as f64).log2();
        let most = (footprint.max(1) as f64).log2().max(reach);
        Walk {
            dependent: pick(|matrix| matrix.first()),
            independent: pick(|matrix| matrix.last()),
            footprints: footprints
                .iter()
                .map(|&bytes| (bytes as f64).log2())
                .collect(),
            hits,
            unknown: [reach, (reach + most) / 2.0, most],
        }
    }

    /// Returns the time saved per averted second-level hit, ns.
    pub fn saved_per_hit(&self, row: &Row) -> Estimate {
        let share = dependent_share(row);
        let [dependent, independent] = self.hits;
        let at = |share_end: End, slope: End, cost: End| {
            let share = share[share_end as usize];
            let [slope, cost] = [slope as usize, cost as usize];
            share * SLOPE_DEPENDENT[slope] * dependent[cost]
                + (1.0 - share) * SLOPE_INDEPENDENT[slope] * independent[cost]
        };
        let mid = End::Median;
        let median = at(mid, mid, mid);
        let doubt = |low: f64, high: f64| Doubt::of(Estimate { median, low, high });
        doubted(
            median,
            &[
                doubt(at(End::Low, mid, mid), at(End::High, mid, mid)),
                doubt(at(mid, End::Low, mid), at(mid, End::High, mid)),
                doubt(at(mid, mid, End::Low), at(mid, mid, End::High)),
            ],
        )
    }

    /// Returns the time saved per averted count of a row, ns.
    pub fn saved_per_miss(&self, row: &Row) -> Estimate {
        let bits = match row.reuse_log2 {
            None => self.unknown,
            Some(reuse) => {
                let bits = f64::from(reuse) + UNIFORM_REUSE;
                [bits - REUSE_DOUBT, bits, bits + REUSE_DOUBT]
            }
        };
        let share = dependent_share(row);
        let mid = End::Median;
        let at = |bits_end: End, share_end: End, slope: End, cost: End| {
            let (bits, share) = (bits[bits_end as usize], share[share_end as usize]);
            let dependent = SLOPE_DEPENDENT[slope as usize] * self.at(&self.dependent, bits, cost);
            let independent =
                SLOPE_INDEPENDENT[slope as usize] * self.at(&self.independent, bits, cost);
            share * dependent + (1.0 - share) * independent
        };
        let median = at(mid, mid, mid, mid);
        let doubt = |low: f64, high: f64| Doubt::of(Estimate { median, low, high });
        doubted(
            median,
            &[
                doubt(at(End::Low, mid, mid, mid), at(End::High, mid, mid, mid)),
                doubt(at(mid, End::Low, mid, mid), at(mid, End::High, mid, mid)),
                doubt(at(mid, mid, End::Low, mid), at(mid, mid, End::High, mid)),
                doubt(at(mid, mid, mid, End::Low), at(mid, mid, mid, End::High)),
            ],
        )
    }

    fn at(&self, saved: &[Vec<f64>; 3], bits: f64, end: End) -> f64 {
        interpolate(&self.footprints, &saved[end as usize], bits)
    }
}

/// Returns the share of a row's misses with an address that depends on an earlier load (low,
/// median, high).
fn dependent_share(row: &Row) -> [f64; 3] {
    row.dependent.map_or(UNKNOWN_DEPENDENT, |share| {
        let share = f64::from(share);
        [share - DEPENDENT_DOUBT, share, share + DEPENDENT_DOUBT].map(|s| s.clamp(0.0, 1.0))
    })
}

#[cfg(test)]
mod tests;
