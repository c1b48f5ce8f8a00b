// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the regions to make huge, and computes the set's benefit.
//!
//! Regions are not additive. A region alone averts less than its part in everything huge, because
//! the other memory keeps evicting it from the TLB. A set with the share `s` of all benefit gains
//!
//! > `benefit(set) = sum(benefit) x (g + (1 - g) x s)`
//!
//! which is the full benefit at `s = 1`, and a fraction `g` of a region's part alone. It grows only
//! with the sum of benefits, so the smallest set that reaches a goal consists of the best regions:
//! no search is needed.

use crate::REGION;
use crate::plan::{Estimate, Why};

/// Benefit of single regions relative to their part in everything huge (low, median, high). CBMM's
/// single slices of canneal sum to 55 % of walk cycles, and all together avert 84 %: 0.65. A region
/// that is much hotter than the rest stays in the TLB by itself: 1.
pub(super) const ALONE: [f64; 3] = [0.65, 0.85, 1.0];
/// The planned set keeps this share of the possible gain.
pub(super) const KEEP: f64 = 0.9;
/// A gap of at most this many regions between chosen ones is filled with regions that pay.
const HOLE: u64 = 4;
/// A stall for compaction if free 2 MiB blocks are scarce, ns.
const COMPACTION_NS: f64 = 100e6;
/// Gains that differ by less than this share are treated as equal.
const EQUAL: f64 = 1e-6;

/// `benefit(set) / sum(benefit)` for a set with the share `share` of all benefit.
pub(super) fn together(alone: f64, share: f64) -> f64 {
    alone + (1.0 - alone) * share.clamp(0.0, 1.0)
}

/// The unit of choice: a region, a whole site without offsets, or small blocks that fill regions
/// together.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// Indices of chunks.
    pub chunks: Vec<usize>,
    /// Index of the site, and the bytes of it that the unit covers; the first of several.
    pub site: u32,
    pub bytes: std::ops::Range<u64>,
    /// Whether it has more than one site.
    pub is_joint: bool,
    /// Number of regions that can be huge; the others are left.
    pub regions: u64,
    pub benefit: f64,
    /// Saved 4 KiB faults beyond all costs, ns (0 if it costs more than it saves).
    pub refund: f64,
    /// benefit - expected cost, ns, with the unit's own sampling error.
    pub net: Estimate,
    /// High end of `net` including the uncertainty that all units share.
    pub most: f64,
    pub misses: f64,
    pub verdict: Option<Why>,
}

impl Unit {
    /// Returns the gain of choosing the unit, which determines its rank.
    fn gain(&self) -> f64 {
        self.benefit + self.refund
    }

    /// Whether it is to be huge.
    pub fn is_huge(&self) -> bool {
        self.verdict.is_some_and(Why::is_for_huge)
    }

    fn gain_per_region(&self) -> f64 {
        self.gain() / self.regions.max(1) as f64
    }
}

/// Limit of the selection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal {
    /// The fewest regions that keep [`KEEP`] of the gain.
    Enough,
    /// The regions with the most misses.
    Top(u64),
    /// The regions with the best gain per byte within this many bytes.
    Budget(u64),
}

/// Decides on every unit: sets `verdict` to [`Why::Pays`] or [`Why::Asked`] for those to make huge.
/// `everything` is the benefit of everything huge; `free` regions are available without compaction.
pub(super) fn choose(units: &mut [Unit], everything: f64, goal: Goal, free: Option<u64>) {
    if let Goal::Top(count) = goal {
        return top(units, count);
    }
    let mut order = worthwhile(units, free);
    match goal {
        Goal::Budget(bytes) => within(units, &mut order, bytes / REGION),
        _ => {
            enough(units, &order, everything);
            fill_holes(units);
        }
    }
}

/// Chooses the units with the most misses, regardless of cost.
fn top(units: &mut [Unit], count: u64) {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by(|&a, &b| units[b].misses.total_cmp(&units[a].misses).then(a.cmp(&b)));
    let mut taken = 0;
    for unit in order {
        let fits = taken + units[unit].regions <= count;
        taken += if fits { units[unit].regions } else { 0 };
        units[unit].verdict = Some(if fits { Why::Asked } else { Why::Spare });
    }
}

/// Returns the units with a benefit above their cost, by their own sampling error, best first; sets
/// the verdict of the others. Uncertainty that all units share applies to the set, not to a unit.
fn worthwhile(units: &mut [Unit], free: Option<u64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    let gain = |unit: usize| units[unit].gain_per_region();
    order.sort_by(|&a, &b| gain(b).total_cmp(&gain(a)).then(a.cmp(&b)));
    let mut left = free.unwrap_or(u64::MAX);
    order.retain(|&index| {
        let unit = &mut units[index];
        let short = unit.regions.saturating_sub(left) as f64;
        let risk = short * COMPACTION_NS;
        unit.verdict = match (unit.net.median - risk, unit.net.low - risk) {
            (net, _) if net <= 0.0 => Some(Why::CostsMore),
            (_, low) if low <= 0.0 => Some(Why::Unclear),
            _ => None,
        };
        let pays = unit.verdict.is_none();
        if pays {
            left = left.saturating_sub(unit.regions);
        }
        pays
    });
    order
}

/// Chooses the first units that together keep enough of the gain of all in `order`, and units of
/// the same site with a gain equal to the last of them.
fn enough(units: &mut [Unit], order: &[usize], everything: f64) {
    let gain = |benefit: f64, refund: f64| {
        let share = if everything > 0.0 {
            benefit / everything
        } else {
            1.0
        };
        benefit * together(ALONE[1], share) + refund
    };
    let total = |of: fn(&Unit) -> f64| order.iter().map(|&unit| of(&units[unit])).sum::<f64>();
    let goal = KEEP * gain(total(|unit| unit.benefit), total(|unit| unit.refund));
    let (mut benefit, mut refund) = (0.0, 0.0);
    let mut last = None;
    for &index in order {
        let unit = &mut units[index];
        let reached = gain(benefit, refund) >= goal;
        let equal = last.is_some_and(|(site, gain): (u32, f64)| {
            site == unit.site && unit.gain_per_region() >= gain * (1.0 - EQUAL)
        });
        let takes = !reached || equal;
        unit.verdict = Some(if takes { Why::Pays } else { Why::Spare });
        if !reached {
            last = Some((unit.site, unit.gain_per_region()));
        }
        benefit += unit.benefit;
        refund += unit.refund;
    }
}

/// Chooses spare units in small gaps between chosen ones of a site: a gap splits the mapping, and
/// memory that pays by itself has no net cost. `units` are in the order of offsets.
fn fill_holes(units: &mut [Unit]) {
    let mut last: Option<usize> = None;
    for index in 0..units.len() {
        if units[index].verdict != Some(Why::Pays) || units[index].is_joint {
            continue;
        }
        let hole = last.filter(|&before| {
            let (before, after) = (&units[before], &units[index]);
            before.site == after.site && after.bytes.start - before.bytes.end <= HOLE * REGION
        });
        for unit in &mut units[hole.map_or(index, |before| before + 1)..index] {
            if unit.verdict == Some(Why::Spare) {
                unit.verdict = Some(Why::Pays);
            }
        }
        last = Some(index);
    }
}

/// Chooses units in order while they fit.
fn within(units: &mut [Unit], order: &mut [usize], mut regions: u64) {
    for &mut index in order {
        let unit = &mut units[index];
        let fits = unit.regions <= regions;
        regions -= if fits { unit.regions } else { 0 };
        unit.verdict = Some(if fits { Why::Pays } else { Why::Budget });
    }
}
