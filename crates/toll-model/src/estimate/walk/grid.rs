// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured grid of the cost table as monotone curves.

use crate::PAGE;
use crate::cost::{CostTable, Measured, TlbGeometry, WalkCost};

/// Grid points where huge pages avert a smaller share of the accesses' misses than this carry
/// little information about one miss (the division amplifies their noise) and are left out.
const MIN_AVERTED: f64 = 0.2;

/// An end of an interval.
#[derive(Clone, Copy)]
pub(super) enum End {
    Low = 0,
    Median = 1,
    High = 2,
}

/// The grid's points for one number of chains.
pub(super) struct Curve {
    /// log2 of the footprints, ascending.
    footprints: Vec<f64>,
    saved: [Vec<f64>; 3],
}

impl Curve {
    /// Interpolates the curve's costs at other footprints.
    pub fn saved(&self, footprints: &[u64], end: End) -> Vec<f64> {
        let saved = &self.saved[end as usize];
        let at = |&bytes: &u64| interpolate(&self.footprints, saved, (bytes as f64).log2());
        footprints.iter().map(at).collect()
    }
}

/// Returns the additional cost of a second-level hit over a first-level hit, from the grid's
/// largest footprint within its reach: with the fewest and with the most chains. 0 without such a
/// point.
pub(super) fn hits(costs: &CostTable) -> [[f64; 3]; 2] {
    let first = u64::from(costs.tlb.l1d_4k.entries) * PAGE;
    let within =
        |point: &&WalkCost| first < point.footprint && point.footprint <= costs.tlb.reach_4k() / 2;
    let largest = costs
        .walk
        .iter()
        .filter(within)
        .map(|point| point.footprint)
        .max();
    let points = costs
        .walk
        .iter()
        .filter(|point| Some(point.footprint) == largest);
    let cost = |point: &WalkCost| {
        let missing = 1.0 - first as f64 / point.footprint as f64;
        let Measured { median, low, high } = point.saved_ns;
        [low, median, high].map(|ns| ns.max(0.0) / missing)
    };
    let fewest = points.clone().min_by_key(|point| point.chains);
    let most = points.max_by_key(|point| point.chains);
    [fewest, most].map(|point| point.map_or([0.0; 3], cost))
}

/// Returns one curve per number of chains, fewest chains first. Points with little information are
/// left out, unless a curve has no other. `hits` are the costs of dependent and independent hits.
pub(super) fn curves(costs: &CostTable, hits: [f64; 2]) -> Vec<Curve> {
    let mut chains: Vec<u32> = costs.walk.iter().map(|point| point.chains).collect();
    chains.sort_unstable();
    chains.dedup();
    let curve = |&chains: &u32| {
        let hit = hits[usize::from(chains > 1)];
        let points = costs.walk.iter().filter(|point| point.chains == chains);
        let mut points: Vec<(u64, Measured, f64)> = points
            .map(|point| {
                (
                    point.footprint,
                    point.saved_ns,
                    averted(&costs.tlb, point.footprint),
                )
            })
            .collect();
        points.sort_unstable_by_key(|(footprint, ..)| *footprint);
        let telling = points
            .iter()
            .filter(|(.., averted)| *averted >= MIN_AVERTED)
            .count();
        if telling > 0 {
            points.retain(|(.., averted)| *averted >= MIN_AVERTED);
        }
        let read = |end: fn(&Measured) -> f64| {
            let cost = |(_, saved, averted): &(u64, Measured, f64)| {
                let averted = averted.max(MIN_AVERTED);
                ((end(saved) - (1.0 - averted) * hit) / averted).max(hit)
            };
            rising(&points.iter().map(cost).collect::<Vec<f64>>())
        };
        Curve {
            footprints: points
                .iter()
                .map(|(footprint, ..)| (*footprint as f64).log2())
                .collect(),
            saved: [read(|m| m.low), read(|m| m.median), read(|m| m.high)],
        }
    };
    chains.iter().map(curve).collect()
}

/// Returns the share of the accesses of a uniform chase with a miss that 2 MiB pages avert.
fn averted(tlb: &TlbGeometry, footprint: u64) -> f64 {
    let missing = |reach: u64| (1.0 - reach as f64 / footprint as f64).max(0.0);
    missing(tlb.reach_4k()) - missing(tlb.reach_2m())
}

/// Returns the closest ascending sequence (pool adjacent violators: a decrease is replaced by the
/// mean).
pub(super) fn rising(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(values.len());
    for &value in values {
        let mut pool = (value, 1);
        while let Some(&(mean, count)) = pools.last().filter(|(mean, _)| *mean > pool.0) {
            pools.pop();
            let total = count + pool.1;
            pool = (
                (mean * count as f64 + pool.0 * pool.1 as f64) / total as f64,
                total,
            );
        }
        pools.push(pool);
    }
    pools
        .iter()
        .flat_map(|&(mean, count)| std::iter::repeat_n(mean, count))
        .collect()
}

/// Makes costs descend with more chains: a cost above that of fewer chains is lowered to it.
pub(super) fn fall_with_chains(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for chains in 1..matrix.len() {
        let (fewer, more) = matrix.split_at_mut(chains);
        for (cost, limit) in more[0].iter_mut().zip(&fewer[chains - 1]) {
            *cost = cost.min(*limit);
        }
    }
    matrix
}

/// Interpolates linearly between the points, constant outside; 0 without points.
pub(super) fn interpolate(xs: &[f64], ys: &[f64], x: f64) -> f64 {
    let right = xs.partition_point(|&point| point < x);
    match (right.checked_sub(1), xs.get(right)) {
        (_, None) => ys.last().copied().unwrap_or(0.0),
        (None, Some(_)) => ys[0],
        (Some(left), Some(_)) => {
            let part = (x - xs[left]) / (xs[right] - xs[left]);
            ys[left] + part * (ys[right] - ys[left])
        }
    }
}
