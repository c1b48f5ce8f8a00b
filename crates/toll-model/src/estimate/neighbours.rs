// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small blocks that fill 2 MiB regions together: the arenas of an interpreter or an allocator.
//!
//! None of them has a region of its own; each shares one with its neighbours. In another run they
//! have other addresses and other neighbours: blocks of one call site are made huge all or none,
//! and so are those of other sites that share regions with them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::chunk::Chunk;
use super::range::{measured, times};
use crate::cost::CostTable;
use crate::plan::Why;
use crate::profile::SiteRows;
use crate::site::{Frame, Level, SiteKind};
use crate::{PAGE, REGION};

/// Chunks that are made huge together or not at all.
pub(super) struct Group {
    /// Ascending indices of chunks.
    pub chunks: Vec<usize>,
    /// Number of regions that the chunks fill.
    pub regions: u64,
}

/// Finds the chunks that fill regions together, estimates them as such, and clears their bar.
pub(super) fn join(sites: &[SiteRows], chunks: &mut [Chunk], costs: &CostTable) -> Vec<Group> {
    let regions = filled(sites);
    let mut call_sites = CallSites::default();
    let mut members: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let rows = &sites[chunk.site as usize];
        let region = small(rows).map(|start| (start + chunk.offset) / REGION);
        let joins = chunk.barred == Some(Why::Partial) && !chunk.is_huge_already();
        if let Some(region) = region.filter(|region| joins && regions.contains(region)) {
            members.entry(region).or_default().push(index);
        }
    }
    for of_region in members.values() {
        let call_site = |&index: &usize| call_site(&sites[chunks[index].site as usize]);
        call_sites.unite(of_region.iter().map(call_site));
    }
    let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
    for of_region in members.values() {
        let first = call_site(&sites[chunks[of_region[0]].site as usize]);
        let group = groups
            .entry(call_sites.root(first))
            .or_insert_with(|| Group {
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
            estimate_part(&mut chunks[index], costs);
        }
    }
    groups
}

/// The pages of a site that has no region of its own and is named by its call site, as addresses.
/// Which of the blocks existed at the same time is not known.
fn small(rows: &SiteRows) -> Option<u64> {
    let site = &rows.site;
    let found = matches!(site.kind, SiteKind::Alloc { .. }) && site.level != Level::NotFound;
    let start = rows.address.filter(|_| found)?;
    let pages = pages(start, site.length);
    let whole = pages.start.next_multiple_of(REGION) + REGION;
    (whole > pages.end && start % REGION == site.misalignment).then_some(start)
}

fn pages(start: u64, length: u64) -> Range<u64> {
    start / PAGE * PAGE..(start + length).next_multiple_of(PAGE)
}

/// Returns the numbers of the regions that small blocks fill completely.
fn filled(sites: &[SiteRows]) -> HashSet<u64> {
    let pages = |rows: &SiteRows| Some(pages(small(rows)?, rows.site.length));
    let mut blocks: Vec<Range<u64>> = sites.iter().filter_map(pages).collect();
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

fn call_site(rows: &SiteRows) -> &[Arc<Frame>] {
    rows.site.kind.frames().unwrap_or_default()
}

/// Estimates a chunk as its part of a region that is collapsed when all of it is mapped.
fn estimate_part(chunk: &mut Chunk, costs: &CostTable) {
    let part = chunk.length as f64 / REGION as f64;
    let pages = (chunk.length / PAGE) as f64;
    chunk.time = times(measured(costs.collapse), part);
    chunk.bloat = (pages - chunk.touched).max(0.0) * costs.bloat_page;
    chunk.barred = None;
}

/// Call sites that share regions, as disjoint sets (union-find).
#[derive(Default)]
struct CallSites<'a> {
    numbers: HashMap<&'a [Arc<Frame>], usize>,
    /// Parent of each site in its set; the root is its own parent.
    parents: Vec<usize>,
}

impl<'a> CallSites<'a> {
    /// Returns the root of a site's set.
    fn root(&mut self, call_site: &'a [Arc<Frame>]) -> usize {
        let next = self.parents.len();
        let mut number = *self.numbers.entry(call_site).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        while self.parents[number] != number {
            number = self.parents[number];
        }
        number
    }

    /// Merges the sets of these sites.
    fn unite(&mut self, call_sites: impl Iterator<Item = &'a [Arc<Frame>]>) {
        let roots: Vec<usize> = call_sites.map(|call_site| self.root(call_site)).collect();
        for &root in &roots {
            // The roots may be equal.
            self.parents[root] = self.parents[roots[0]];
        }
    }
}
