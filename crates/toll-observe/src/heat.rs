// SPDX-License-Identifier: MIT OR Apache-2.0
//! Heat strips: a profile's counts per 2 MiB region.

use toll_model::profile::{Profile, SiteRows};
use toll_model::site::Site;
use toll_model::{PAGE, REGION};

/// One cell of a strip.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cell {
    pub misses: f64,
    /// 4 KiB pages touched.
    pub touched: f64,
    /// Bytes that were in huge pages when recorded.
    pub huge: f64,
}

/// The cells of one site, by offset.
#[derive(Debug, Clone, PartialEq)]
pub struct Strip {
    /// Bytes per cell: 2 MiB, or a multiple of it.
    pub unit: u64,
    /// Bytes of the first cell that precede the site's start.
    pub lead: u64,
    pub cells: Vec<Cell>,
}

impl Strip {
    /// Distributes the counts of `rows` over at most `limit` cells (at least one).
    pub fn new(rows: &SiteRows, limit: usize) -> Strip {
        Strip::aligned(rows, rows.site.misalignment, extent(rows), limit)
    }

    /// Like [`Strip::new`], with cells that begin `lead` bytes before the site and extend to
    /// `extent` bytes after its start, so that two runs can be shown side by side.
    pub fn aligned(rows: &SiteRows, lead: u64, extent: u64, limit: usize) -> Strip {
        let lead = lead % REGION;
        let end = lead.saturating_add(extent);
        let regions = end.div_ceil(REGION).max(1);
        let unit = REGION * regions.div_ceil(limit.max(1) as u64);
        let mut cells = vec![Cell::default(); end.div_ceil(unit).max(1) as usize];
        for row in &rows.rows {
            let begin = lead.saturating_add(row.offset);
            let length = row.length.max(1);
            for (index, share) in overlaps(begin, length, unit, cells.len()) {
                let cell = &mut cells[index];
                cell.misses += row.misses * share;
                cell.touched += f64::from(row.touched_pages) * share;
                if row.huge {
                    cell.huge += length as f64 * share;
                }
            }
        }
        Strip { unit, lead, cells }
    }

    /// Offset of a cell's first byte from the site's start (0 for the first cell).
    pub fn offset(&self, index: usize) -> u64 {
        (index as u64)
            .saturating_mul(self.unit)
            .saturating_sub(self.lead)
    }

    /// The largest count of misses of a cell.
    pub fn peak(&self) -> f64 {
        self.cells.iter().map(|c| c.misses).fold(0.0, f64::max)
    }

    /// Number of cells with touches or misses.
    pub fn used(&self) -> usize {
        self.cells
            .iter()
            .filter(|c| c.misses > 0.0 || c.touched > 0.0)
            .count()
    }
}

/// Bytes from a site's start to its end or its last row, whichever is later.
pub fn extent(rows: &SiteRows) -> u64 {
    let last = rows
        .rows
        .last()
        .map_or(0, |r| r.offset.saturating_add(r.length));
    rows.site.length.max(last)
}

/// The cells that `begin..begin + length` overlaps, with the fraction of it in each. What lies
/// beyond the last cell counts in the last.
fn overlaps(
    begin: u64,
    length: u64,
    unit: u64,
    cells: usize,
) -> impl Iterator<Item = (usize, f64)> {
    let end = begin.saturating_add(length);
    let last = cells as u64 - 1;
    let first_index = (begin / unit).min(last);
    let last_index = ((end - 1) / unit).min(last);
    (first_index..=last_index).map(move |index| {
        let from = begin.max(index * unit);
        let to = if index == last {
            end
        } else {
            end.min((index + 1) * unit)
        };
        (
            index as usize,
            to.saturating_sub(from) as f64 / length as f64,
        )
    })
}

/// Level 0..=8 of a count relative to the largest: 0 only for no misses; square-root steps above
/// it, so that small counts stay visible.
pub fn level(misses: f64, peak: f64) -> u8 {
    if misses <= 0.0 || peak <= 0.0 {
        return 0;
    }
    ((misses / peak).sqrt() * 8.0).ceil().clamp(1.0, 8.0) as u8
}

/// The sums of one site.
#[derive(Debug, Clone, Copy)]
pub struct Total<'a> {
    pub rows: &'a SiteRows,
    pub misses: f64,
    /// Bytes touched.
    pub touched: u64,
    /// Bytes that were in huge pages.
    pub huge: u64,
}

impl<'a> Total<'a> {
    fn new(rows: &'a SiteRows) -> Total<'a> {
        let sum = |f: &dyn Fn(&toll_model::profile::Row) -> u64| {
            rows.rows.iter().map(f).fold(0, u64::saturating_add)
        };
        Total {
            rows,
            misses: rows.rows.iter().map(|r| r.misses).sum(),
            touched: sum(&|r| u64::from(r.touched_pages) * PAGE),
            huge: sum(&|r| if r.huge { r.length } else { 0 }),
        }
    }

    pub fn site(&self) -> &'a Site {
        &self.rows.site
    }
}

/// The sums of every site, most misses first.
pub fn totals(profile: &Profile) -> Vec<Total<'_>> {
    let mut totals: Vec<_> = profile.sites.iter().map(Total::new).collect();
    totals.sort_by(|a, b| {
        b.misses
            .total_cmp(&a.misses)
            .then(b.touched.cmp(&a.touched))
    });
    totals
}

/// Finds the same site in another recording: equal in kind, else equal in name.
pub fn find<'a>(profile: &'a Profile, site: &Site) -> Option<&'a SiteRows> {
    let name = site.to_string();
    let all = || profile.sites.iter();
    all()
        .find(|rows| rows.site.kind == site.kind)
        .or_else(|| all().find(|rows| rows.site.to_string() == name))
}

#[cfg(test)]
mod tests;
