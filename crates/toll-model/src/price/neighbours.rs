// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small blocks that fill 2 MiB regions together: the arenas of an interpreter or an allocator.
//!
//! None of them has a region of its own, and each shares one with its neighbours. Another run puts
//! them elsewhere, so that other neighbours share a region: blocks of one call site are made huge
//! all or none, and so are those of other sites that share regions with them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::range::{measured, times};
use super::region::Chunk;
use crate::anchor::{AnchorKind, Frame, Level};
use crate::cost::CostTable;
use crate::plan::Why;
use crate::profile::AnchorRows;
use crate::{PAGE, REGION};

/// Chunks that are made huge together or not at all.
pub(super) struct Group {
    /// Rising indices of chunks.
    pub chunks: Vec<usize>,
    /// Regions that the chunks fill.
    pub regions: u64,
}

/// Finds the chunks that fill regions together, prices them for that, and lifts their bar.
pub(super) fn join(anchors: &[AnchorRows], chunks: &mut [Chunk], costs: &CostTable) -> Vec<Group> {
    let regions = filled(anchors);
    let mut sites = Sites::default();
    let mut members: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let rows = &anchors[chunk.anchor as usize];
        let region = small(rows).map(|start| (start + chunk.offset) / REGION);
        let joins = chunk.barred == Some(Why::Partial) && !chunk.is_huge_already();
        if let Some(region) = region.filter(|region| joins && regions.contains(region)) {
            members.entry(region).or_default().push(index);
        }
    }
    for of_region in members.values() {
        let site = |&index: &usize| site(&anchors[chunks[index].anchor as usize]);
        sites.unite(of_region.iter().map(site));
    }
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    for of_region in members.values() {
        let first = site(&anchors[chunks[of_region[0]].anchor as usize]);
        let group = groups.entry(sites.root(first)).or_insert_with(|| Group {
            chunks: Vec::new(),
            regions: 0,
        });
        group.regions += 1;
        group.chunks.extend(of_region);
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    for group in &mut groups {
        group.chunks.sort_unstable();
        for &index in &group.chunks {
            price_part(&mut chunks[index], costs);
        }
    }
    groups
}

/// The pages of an anchor that has no region of its own and is named by its call site: the
/// address of its first byte. Which of the blocks lived at the same time is not known.
fn small(rows: &AnchorRows) -> Option<u64> {
    let anchor = &rows.anchor;
    let found = matches!(anchor.kind, AnchorKind::Alloc { .. }) && anchor.level != Level::NotFound;
    let start = rows.address.filter(|_| found)?;
    let pages = pages(start, anchor.length);
    let whole = pages.start.next_multiple_of(REGION) + REGION;
    (whole > pages.end && start % REGION == anchor.misalignment).then_some(start)
}

fn pages(start: u64, length: u64) -> Range<u64> {
    start / PAGE * PAGE..(start + length).next_multiple_of(PAGE)
}

/// Numbers of the regions that small blocks fill to the last page.
fn filled(anchors: &[AnchorRows]) -> HashSet<u64> {
    let pages = |rows: &AnchorRows| Some(pages(small(rows)?, rows.anchor.length));
    let mut blocks: Vec<Range<u64>> = anchors.iter().filter_map(pages).collect();
    blocks.sort_unstable_by_key(|block| block.start);
    let mut runs: Vec<Range<u64>> = Vec::new();
    for block in blocks {
        match runs.last_mut() {
            Some(run) if block.start <= run.end => run.end = run.end.max(block.end),
            _ => runs.push(block),
        }
    }
    let whole = |run: Range<u64>| run.start.div_ceil(REGION)..run.end / REGION;
    runs.into_iter().flat_map(whole).collect()
}

fn site(rows: &AnchorRows) -> &[Arc<Frame>] {
    match &rows.anchor.kind {
        AnchorKind::Alloc { frames, .. } => frames,
        _ => &[],
    }
}

/// Prices a chunk as its part of a region that is collapsed once all of it is mapped.
fn price_part(chunk: &mut Chunk, costs: &CostTable) {
    let part = chunk.length as f64 / REGION as f64;
    let pages = (chunk.length / PAGE) as f64;
    chunk.time = times(measured(costs.collapse), part);
    chunk.bloat = (pages - chunk.touched).max(0.0) * costs.bloat_page;
    chunk.barred = None;
}

/// Call sites that share regions, as disjoint sets.
#[derive(Default)]
struct Sites<'a> {
    numbers: HashMap<&'a [Arc<Frame>], usize>,
    /// Of each site, another of its set; itself for the set's root.
    parents: Vec<usize>,
}

impl<'a> Sites<'a> {
    /// The number that stands for a site's set.
    fn root(&mut self, site: &'a [Arc<Frame>]) -> usize {
        let next = self.parents.len();
        let mut number = *self.numbers.entry(site).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        while self.parents[number] != number {
            number = self.parents[number];
        }
        number
    }

    /// Makes one set of the sets of these sites.
    fn unite(&mut self, sites: impl Iterator<Item = &'a [Arc<Frame>]>) {
        let roots: Vec<usize> = sites.map(|site| self.root(site)).collect();
        for &root in &roots {
            // Roots may be those of one set.
            self.parents[root] = self.parents[roots[0]];
        }
    }
}
