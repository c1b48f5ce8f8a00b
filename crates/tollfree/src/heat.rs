// SPDX-License-Identifier: MIT OR Apache-2.0
//! Heat strips: a profile's counts per 2 MiB region, and their display on a terminal.

use std::io::IsTerminal;

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

/// The drawing style of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns.
    pub width: usize,
    /// Block characters; otherwise plain ASCII.
    pub unicode: bool,
    pub colour: bool,
}

impl Style {
    /// Detects what stdout supports: width, characters of the locale, colour unless NO_COLOR is
    /// set.
    pub fn of_stdout() -> Style {
        let terminal = std::io::stdout().is_terminal();
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        let utf8 = locale.is_some_and(|l| {
            let l = l.to_ascii_lowercase();
            l.contains("utf-8") || l.contains("utf8")
        });
        Style {
            width: width(terminal).clamp(40, 200),
            unicode: utf8,
            colour: terminal
                && set("NO_COLOR").is_none()
                && set("TERM").is_some_and(|t| t != "dumb"),
        }
    }

    /// One line of cells.
    pub fn strip(&self, strip: &Strip, peak: f64) -> String {
        const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = ['.', '1', '2', '3', '4', '5', '6', '7', '8'];
        // 256-colour codes from dim to bright orange; level 0 is grey.
        const COLOURS: [u8; 9] = [240, 94, 130, 136, 172, 208, 209, 215, 223];
        let mut line = String::new();
        let mut current = None;
        for cell in &strip.cells {
            let level = usize::from(level(cell.misses, peak));
            if self.colour && current != Some(level) {
                line.push_str(&format!("\x1b[38;5;{}m", COLOURS[level]));
                current = Some(level);
            }
            line.push(if self.unicode { BLOCKS } else { ASCII }[level]);
        }
        if self.colour {
            line.push_str("\x1b[0m");
        }
        line
    }
}

/// Columns of the terminal; without one `$COLUMNS`, else 80.
fn width(terminal: bool) -> usize {
    let from_terminal = || {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        (size.ws_col > 0).then_some(usize::from(size.ws_col))
    };
    let from_environment = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal
        .then(from_terminal)
        .flatten()
        .or_else(from_environment)
        .unwrap_or(80)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toll_model::profile::Row;
    use toll_model::site::{Level, SiteKind};

    fn rows(misalignment: u64, length: u64, list: &[(u64, u64, f64)]) -> SiteRows {
        SiteRows {
            site: Site {
                id: 0,
                kind: SiteKind::Heap,
                length,
                misalignment,
                level: Level::Exact,
            },
            rows: list
                .iter()
                .map(|&(offset, length, misses)| Row {
                    offset,
                    length,
                    accesses: 0.0,
                    misses,
                    misses_huge: None,
                    l2_spared: 0.0,
                    reuse_log2: None,
                    dependent: None,
                    touched_pages: (length / PAGE) as u32,
                    huge: false,
                })
                .collect(),
            freed: false,
            places: Vec::new(),
            address: None,
        }
    }

    fn misses(strip: &Strip) -> Vec<f64> {
        strip.cells.iter().map(|c| c.misses).collect()
    }

    #[test]
    fn regions_follow_the_alignment_of_the_run() {
        let aligned = rows(0, 2 * REGION, &[(0, PAGE, 1.0), (REGION - PAGE, PAGE, 2.0)]);
        assert_eq!(misses(&Strip::new(&aligned, 100)), [3.0, 0.0]);
        let shifted = rows(
            PAGE,
            2 * REGION,
            &[(0, PAGE, 1.0), (REGION - PAGE, PAGE, 2.0)],
        );
        let strip = Strip::new(&shifted, 100);
        assert_eq!(misses(&strip), [1.0, 2.0, 0.0]);
        assert_eq!(strip.offset(1), REGION - PAGE);
    }

    #[test]
    fn a_row_over_several_regions_is_split_by_bytes() {
        let strip = Strip::new(&rows(0, 0, &[(REGION / 2, 2 * REGION, 4.0)]), 100);
        assert_eq!(misses(&strip), [1.0, 2.0, 1.0]);
        assert_eq!(strip.cells.iter().map(|c| c.touched).sum::<f64>(), 1024.0);
    }

    #[test]
    fn too_many_regions_share_cells_and_nothing_is_lost() {
        let list: Vec<_> = (0..512).map(|i| (i * REGION, PAGE, 1.0)).collect();
        let strip = Strip::new(&rows(0, 512 * REGION, &list), 80);
        assert_eq!(strip.unit, 7 * REGION);
        assert_eq!(strip.cells.len(), 74);
        assert_eq!(misses(&strip).iter().sum::<f64>(), 512.0);
    }

    #[test]
    fn impossible_lengths_do_no_harm() {
        let strip = Strip::new(&rows(PAGE, u64::MAX, &[(1 << 56, PAGE, 5.0)]), 80);
        assert!(strip.cells.len() <= 80);
        assert_eq!(misses(&strip).iter().sum::<f64>(), 5.0);
        assert_eq!(Strip::new(&rows(0, 0, &[]), 80).cells.len(), 1);
    }

    #[test]
    fn any_miss_is_visible_and_the_peak_is_full() {
        assert_eq!(level(0.0, 100.0), 0);
        assert_eq!(level(0.001, 100.0), 1);
        assert_eq!(level(100.0, 100.0), 8);
        assert_eq!(level(25.0, 100.0), 4);
        assert_eq!(level(1.0, 0.0), 0);
    }

    #[test]
    fn strips_fit_the_style() {
        let strip = Strip::new(
            &rows(0, 4 * REGION, &[(0, PAGE, 4.0), (REGION, PAGE, 1.0)]),
            9,
        );
        let style = |unicode, colour| Style {
            width: 80,
            unicode,
            colour,
        };
        assert_eq!(style(true, false).strip(&strip, 4.0), "█▄··");
        assert_eq!(style(false, false).strip(&strip, 4.0), "84..");
        let coloured = style(true, true).strip(&strip, 4.0);
        assert!(coloured.ends_with("\x1b[0m") && coloured.contains('█'));
    }
}
