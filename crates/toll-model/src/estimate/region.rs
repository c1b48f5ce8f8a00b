// SPDX-License-Identifier: MIT OR Apache-2.0
//! The regions of a profile, with benefit and cost.

use super::chunk::Chunk;
use super::range::{measured, minus, plus, sum, times};
use super::sampling::{Sampling, shrink};
use super::walk::Walk;
use crate::cost::CostTable;
use crate::plan::{Estimate, Why};
use crate::profile::{Row, SiteRows};
use crate::site::{Level, Site, SiteKind};
use crate::{PAGE, REGION};

const PAGES: f64 = (REGION / PAGE) as f64;

/// Probability that the block for a new huge page is cold (low, median, high): blocks that were
/// used a second ago are warm, those of an idle machine are not.
const COLD: [f64; 3] = [0.0, 0.25, 1.0];
/// The same after memory was warmed up.
const COLD_WARMED: [f64; 3] = [0.0, 0.0, 0.1];
/// Share of a cold block's additional cost that is due to the huge page if the program touches all
/// of it: its 4 KiB pages would have been cold as well, half of them after a pause, all of them on
/// a fresh machine (docs/guide/estimates.md has the measurement).
const COLD_DENSE: f64 = 0.5;

/// Returns the chunks of all sites, in the order of the profile.
pub(super) fn chunks(
    sites: &[SiteRows],
    costs: &CostTable,
    walk: &Walk,
    sampling: Option<&Sampling>,
    warm: bool,
) -> Vec<Chunk> {
    let cold = cold_chance(warm);
    let mut chunks = Vec::new();
    for (index, rows) in sites.iter().enumerate() {
        let first = chunks.len();
        for row in &rows.rows {
            let saved = [walk.saved_per_miss(row), walk.saved_per_hit(row)];
            let swept = sampling.map_or(0.0, |sampling| sampling.swept(row));
            let add = |chunk: &mut Chunk, share| add(chunk, row, share, saved, swept);
            spread(&mut chunks, first, index as u32, rows, row, add);
        }
        for chunk in &mut chunks[first..] {
            finish(chunk, &rows.site, costs, cold);
        }
        if let Some(sampling) = sampling {
            shrink(&mut chunks[first..], sampling);
        }
        for chunk in &mut chunks[first..] {
            chunk.add_hits();
        }
    }
    chunks
}

/// Distributes a row's counts over the chunks that it covers, by bytes.
fn spread(
    chunks: &mut Vec<Chunk>,
    first: usize,
    index: u32,
    rows: &SiteRows,
    row: &Row,
    add: impl Fn(&mut Chunk, f64),
) {
    let mut offset = row.offset;
    while offset < row.end() {
        let (start, end) = bounds(&rows.site, offset);
        if end <= offset {
            return;
        }
        if chunks.len() == first || chunks[chunks.len() - 1].offset != start {
            chunks.push(Chunk::empty(index, start, end - start));
        }
        let stop = end.min(row.end());
        let share = (stop - offset) as f64 / row.length as f64;
        let last = chunks.len() - 1;
        add(&mut chunks[last], share);
        offset = stop;
    }
}

/// Returns start and end of the 2 MiB region around `offset`, clamped to the site.
fn bounds(site: &Site, offset: u64) -> (u64, u64) {
    let boundary = (offset + site.misalignment) / REGION * REGION;
    let start = boundary.saturating_sub(site.misalignment);
    let end = boundary + REGION - site.misalignment;
    // A site's last page may extend beyond its last byte.
    (start, end.min(site.length.next_multiple_of(PAGE)))
}

fn add(chunk: &mut Chunk, row: &Row, share: f64, [walk, hit]: [Estimate; 2], swept: f64) {
    chunk.misses += row.misses * share;
    chunk.touched += f64::from(row.touched_pages) * share;
    if row.huge {
        chunk.huge += row.length as f64 * share;
        return;
    }
    let left = row.misses_huge.unwrap_or(0.0).min(row.misses) * share;
    let averted = row.misses * share - left;
    chunk.left += left;
    chunk.averted += averted;
    chunk.swept += averted * swept;
    chunk.benefit = sum([chunk.benefit, times(walk, averted)].into_iter());
    chunk.hits = sum([chunk.hits, times(hit, row.l2_spared * share)].into_iter());
}

/// Estimates a chunk with complete counts, and determines whether it can be huge at all.
fn finish(chunk: &mut Chunk, site: &Site, costs: &CostTable, cold: [f64; 3]) {
    chunk.touched = chunk.touched.min((chunk.length / PAGE) as f64);
    chunk.time = match made_by(&site.kind) {
        Made::AtFault => fault(chunk.touched, costs, cold),
        Made::Later => measured(costs.collapse),
    };
    chunk.bloat = (PAGES - chunk.touched).max(0.0) * costs.bloat_page;
    if chunk.is_huge_already() {
        chunk.barred = Some(Why::AlreadyHuge);
    }
    if chunk.length < REGION {
        chunk.barred = Some(Why::Partial);
    }
    if !is_acted_on(&site.kind) {
        chunk.barred = Some(Why::NotActedOn);
    } else if site.level == Level::NotFound {
        chunk.barred = Some(Why::NotFound);
    }
}

/// Returns the time that a chunk takes if it is huge from its first touch on.
pub(super) fn time_at_fault(chunk: &Chunk, costs: &CostTable, warm: bool) -> Estimate {
    fault(chunk.touched, costs, cold_chance(warm))
}

fn cold_chance(warm: bool) -> [f64; 3] {
    if warm { COLD_WARMED } else { COLD }
}

/// Time at which a region of a site becomes huge.
enum Made {
    /// Advised before its first touch: one huge fault replaces the 4 KiB faults.
    AtFault,
    /// Collapsed after it is populated: memory is copied and no fault is saved.
    Later,
}

fn made_by(kind: &SiteKind) -> Made {
    match kind {
        SiteKind::Alloc { .. } | SiteKind::Address { .. } => Made::AtFault,
        // By the runtime's own switch; other runtimes have none.
        SiteKind::Reservation { runtime } if runtime == "jvm" => Made::AtFault,
        _ => Made::Later,
    }
}

fn is_acted_on(kind: &SiteKind) -> bool {
    !matches!(kind, SiteKind::File { .. } | SiteKind::Stack)
}

/// Returns the time of one huge fault minus that of the 4 KiB faults that it replaces, ns.
fn fault(touched: f64, costs: &CostTable, cold: [f64; 3]) -> Estimate {
    let warm = measured(costs.fault_2m_warm);
    let extra = (costs.fault_2m_cold.median - warm.median).max(0.0);
    // Untouched pages are only due to the huge page; of the touched ones, a share is.
    let own = 1.0 - (1.0 - COLD_DENSE) * (touched / PAGES).min(1.0);
    let cold = Estimate {
        low: cold[0] * extra * own,
        median: cold[1] * extra * own,
        high: cold[2] * extra * own,
    };
    let saved = times(measured(costs.fault_4k), touched);
    // The three are independent; the probability of a cold block is the same for all regions of a
    // run, so that sums of these times have a common error.
    minus(plus(warm, cold), saved)
}
