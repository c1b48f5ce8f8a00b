// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the regions of a process that a plan makes huge, given its current mappings.

use toll_model::REGION;
use toll_model::intervals::merged;

use super::plan::WatchPlan;
use crate::proc::{InMemory, Kind, Mapping};

/// Minimum planned bytes of a region to act on it (75 %).
pub const ENOUGH: u64 = REGION / 4 * 3;

/// Byte ranges, sorted and disjoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Sorts and merges; empty and inverted ranges are dropped.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Ranges {
        let ranges = ranges.into_iter().filter(|(start, end)| start < end);
        Ranges(merged(ranges.collect()))
    }

    /// Returns the number of bytes of `start..end` in the ranges.
    pub fn covered(&self, start: u64, end: u64) -> u64 {
        let first = self.0.partition_point(|range| range.1 <= start);
        self.0[first..]
            .iter()
            .take_while(|range| range.0 < end)
            .map(|range| range.1.min(end) - range.0.max(start))
            .sum()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }
}

/// First address of the brk heap; `None` before the first brk.
pub fn heap_start(maps: &[Mapping]) -> Option<u64> {
    maps.iter()
        .find(|mapping| mapping.kind() == Kind::Heap)
        .map(|mapping| mapping.start)
}

/// Returns the planned byte ranges at their addresses in this process.
pub fn planned(maps: &[Mapping], plan: &WatchPlan) -> Ranges {
    let mut ranges = plan.addresses.clone();
    if let Some(start) = heap_start(maps) {
        ranges.extend(from(start, &plan.heap));
    }
    if plan.reservations.iter().any(|runtime| runtime == "go") {
        let go = maps.iter().filter(|mapping| mapping.is_go_heap());
        ranges.extend(go.map(|mapping| (mapping.start, mapping.end)));
    }
    for (name, intervals) in &plan.vmas {
        let named = maps.iter().filter(|mapping| *mapping.name == **name);
        ranges.extend(named.flat_map(|mapping| from(mapping.start, intervals)));
    }
    for (name, intervals) in &plan.files {
        let parts = maps.iter().filter(|mapping| *mapping.name == **name);
        ranges.extend(parts.flat_map(|mapping| within(mapping, intervals)));
    }
    Ranges::new(ranges)
}

/// Converts intervals of a file to addresses in one of its mappings.
fn within(mapping: &Mapping, intervals: &[(u64, u64)]) -> impl Iterator<Item = (u64, u64)> {
    let (first, last) = (mapping.offset, mapping.offset.saturating_add(mapping.len()));
    let at = move |offset: u64| mapping.start + (offset.clamp(first, last) - first);
    intervals.iter().map(move |(from, to)| (at(*from), at(*to)))
}

/// Converts intervals relative to `base` to addresses.
fn from(base: u64, intervals: &[(u64, u64)]) -> impl Iterator<Item = (u64, u64)> {
    let at = move |offset: &u64| base.saturating_add(*offset);
    intervals
        .iter()
        .map(move |(start, end)| (at(start), at(end)))
}

/// Whether a plan may act on a mapping. Shared memory can be huge only where its address and its
/// offset agree.
fn eligible(mapping: &Mapping, in_memory: Option<&InMemory>) -> bool {
    let is_own = mapping.is_private_anonymous() && mapping.kind() != Kind::Stack;
    is_own || is_aligned(mapping) && in_memory.is_some_and(|it| it.is_shared(mapping))
}

fn is_aligned(mapping: &Mapping) -> bool {
    mapping.start.wrapping_sub(mapping.offset) % REGION == 0
}

/// Returns the regions (addresses, ascending) that the plan selects and that lie completely in one
/// mapping, so that they can be huge. Without `in_memory`, none of shared memory.
pub fn grown(maps: &[Mapping], plan: &WatchPlan, in_memory: Option<&InMemory>) -> Vec<u64> {
    let planned = planned(maps, plan);
    let wanted = |region: u64| plan.all || planned.covered(region, region + REGION) >= ENOUGH;
    maps.iter()
        .filter(|mapping| eligible(mapping, in_memory))
        .flat_map(regions_of)
        .filter(|region| wanted(*region))
        .collect()
}

/// Returns the complete regions of a mapping.
fn regions_of(mapping: &Mapping) -> impl Iterator<Item = u64> {
    let first = mapping.start.next_multiple_of(REGION);
    (first..mapping.end).step_by(REGION as usize).take_while({
        let end = mapping.end;
        move |region| end - region >= REGION
    })
}
