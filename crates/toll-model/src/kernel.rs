// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles for the kernel's estimator (mm/econ): the cost of page walks in each region, with names
//! that the kernel can resolve.
//!
//! A row is the expected time in page walks in 2 MiB of memory over one run if it is mapped by 4
//! KiB pages from the first touch on, in ns, by [`crate::cost`]: the benefit of a region. The
//! kernel scales it by the remaining lifetime, so a profile includes the duration of a run. Faults
//! that a huge page saves are not included: the kernel accounts for those by its own costs, from
//! the touched pages.
//!
//! The text format is described in the patch queue's Documentation/admin-guide/mm/econ.rst.

use std::fmt::Write;

use crate::plan::{Plan, Region};
use crate::profile::{Place, Profile, SiteRows};
use crate::site::{Level, SiteKind};
use crate::{PAGE, REGION};

/// Maximum length that the kernel accepts.
pub const MAX_BYTES: usize = 1 << 20;
/// Neighbours are merged if their benefits differ by less than this share of the larger, and their
/// touched pages by at most [`SAME_PAGES`].
const SAME: f64 = 0.1;
const SAME_PAGES: u32 = 16;

/// Weights of a row's benefit in percent: for the same mapping or heap, for one of the same class,
/// for the same kind of memory.
const fn confidence(level: Level) -> u32 {
    match level {
        Level::Exact => 90,
        Level::Class => 75,
        Level::Kind => 50,
        Level::NotFound => 0,
    }
}

/// File offset of the program's zeroed data: the end of the file part of the writable segment,
/// rounded up to a page.
pub type ZeroedData<'a> = Option<(&'a str, u64)>;

/// A profile for the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelProfile {
    /// Text to write to /proc/PID/mm_profile.
    pub text: String,
    pub rows: usize,
    /// Numbers of included regions, and of regions that the kernel could not resolve.
    pub carried: usize,
    pub lost: usize,
    /// Benefit of each, ns.
    pub carried_ns: f64,
    pub lost_ns: f64,
}

/// Name of a row, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Heap,
    Bss,
    Mapping {
        class: u8,
        protection: u8,
        ordinal: u32,
    },
}

#[derive(Debug, Clone, Copy)]
struct Row {
    name: Name,
    begin: u64,
    end: u64,
    /// Benefit per 2 MiB.
    benefit_ns: f64,
    touched: u32,
    confidence: u32,
}

/// Builds the kernel's profile from a plan's regions and the addresses in `profile`.
///
/// `run_ns` is the duration of one run. If there are more rows than fit, those with the least
/// benefit are left out and counted as lost.
pub fn kernel_profile(
    profile: &Profile,
    plan: &Plan,
    zeroed: ZeroedData<'_>,
    run_ns: f64,
) -> KernelProfile {
    let mut rows = Vec::new();
    let mut made = KernelProfile {
        text: String::new(),
        rows: 0,
        carried: 0,
        lost: 0,
        carried_ns: 0.0,
        lost_ns: 0.0,
    };
    for region in &plan.regions {
        let site = profile
            .sites
            .iter()
            .find(|rows| rows.site.id == region.site);
        let found = site.map_or_else(Vec::new, |site| rows_of(site, region, zeroed));
        let part = found.iter().map(|row| row.end - row.begin).sum::<u64>() as f64
            / region.length.max(1) as f64;
        match part > 0.5 {
            true => made.carried += 1,
            false => made.lost += 1,
        }
        made.carried_ns += region.benefit_ns * part;
        made.lost_ns += region.benefit_ns * (1.0 - part);
        rows.extend(found);
    }
    rows.sort_by_key(|row| (row.name, row.begin));
    let rows = without_overlap(rows);
    let head = head(profile, run_ns);
    let rows = fitting(rows, MAX_BYTES - head.len() - "end 4294967295\n".len());
    made.text = head;
    for row in &rows {
        made.text += &row.to_string();
    }
    let _ = writeln!(made.text, "end {}", rows.len());
    made.rows = rows.len();
    made
}

fn head(profile: &Profile, run_ns: f64) -> String {
    let path = &profile.program.path;
    // Must be a single word for the kernel's comparison.
    let name: String = path
        .rsplit('/')
        .next()
        .unwrap_or(path)
        .chars()
        .map(|c| if c.is_whitespace() { '_' } else { c })
        .collect();
    format!(
        "mm_profile 1\nprogram {}\nrun {}\n",
        if name.is_empty() { "-" } else { &name },
        run_ns.max(0.0) as u64
    )
}

/// Returns the rows of a region: several if it lies in several mappings.
fn rows_of(site: &SiteRows, region: &Region, zeroed: ZeroedData<'_>) -> Vec<Row> {
    let row = |name, begin: u64, length: u64| Row {
        name,
        begin: begin / PAGE * PAGE,
        end: (begin + length).next_multiple_of(PAGE),
        benefit_ns: region.benefit_ns * REGION as f64 / region.length as f64,
        touched: (u64::from(region.touched_pages) * REGION / region.length).min(REGION / PAGE)
            as u32,
        confidence: confidence(region.level.min(Level::Kind)),
    };
    match (&site.site.kind, zeroed) {
        (SiteKind::Heap, _) => vec![row(Name::Heap, region.offset, region.length)],
        (SiteKind::File { path, .. }, Some((program, begin))) if path == program => {
            let from = region.offset.max(begin);
            let to = region.end().max(from);
            match to > from {
                true => vec![row(Name::Bss, from - begin, to - from)],
                false => Vec::new(),
            }
        }
        _ => site
            .places
            .iter()
            .filter_map(|place| {
                let from = region.offset.max(place.offset);
                let to = region.end().min(place.offset + place.length);
                (from < to).then(|| row(name(place), place.at + (from - place.offset), to - from))
            })
            .collect(),
    }
}

fn name(place: &Place) -> Name {
    Name::Mapping {
        class: place.class,
        protection: place.protection,
        ordinal: place.ordinal,
    }
}

/// Returns sorted rows, each starting at the end of the one before it, with equal neighbours
/// merged.
fn without_overlap(rows: Vec<Row>) -> Vec<Row> {
    let mut clear: Vec<Row> = Vec::with_capacity(rows.len());
    for mut row in rows {
        if let Some(last) = clear.last_mut().filter(|last| last.name == row.name) {
            row.begin = row.begin.max(last.end);
            if row.begin >= row.end {
                continue;
            }
            if last.end == row.begin && are_alike(last, &row) {
                last.join(&row);
                continue;
            }
        }
        clear.push(row);
    }
    clear
}

fn are_alike(one: &Row, other: &Row) -> bool {
    let larger = one.benefit_ns.max(other.benefit_ns);
    (one.benefit_ns - other.benefit_ns).abs() <= SAME * larger
        && one.touched.abs_diff(other.touched) <= SAME_PAGES
        && one.confidence == other.confidence
}

/// Selects the rows that fit into `room` bytes: those with the most benefit, in order.
fn fitting(rows: Vec<Row>, room: usize) -> Vec<Row> {
    let lengths: Vec<usize> = rows.iter().map(|row| row.to_string().len()).collect();
    if lengths.iter().sum::<usize>() <= room {
        return rows;
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|a, b| rows[*b].benefit_ns.total_cmp(&rows[*a].benefit_ns));
    let mut left = room;
    let mut kept: Vec<usize> = order
        .into_iter()
        .take_while(|index| {
            let fits = lengths[*index] <= left;
            left = left.saturating_sub(lengths[*index]);
            fits
        })
        .collect();
    kept.sort_unstable();
    kept.into_iter().map(|index| rows[index]).collect()
}

impl Row {
    /// Merges the following row, weighted by length.
    fn join(&mut self, next: &Row) {
        let (own, other) = (
            (self.end - self.begin) as f64,
            (next.end - next.begin) as f64,
        );
        let mean = |a: f64, b: f64| (a * own + b * other) / (own + other);
        self.benefit_ns = mean(self.benefit_ns, next.benefit_ns);
        self.touched = mean(f64::from(self.touched), f64::from(next.touched)).round() as u32;
        self.end = next.end;
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name {
            Name::Heap => write!(f, "heap")?,
            Name::Bss => write!(f, "bss")?,
            Name::Mapping {
                class,
                protection,
                ordinal,
            } => write!(f, "mmap {ordinal} {class} {protection}")?,
        }
        writeln!(
            f,
            " {:#x} {:#x} {} {} {}",
            self.begin,
            self.end,
            self.benefit_ns.max(0.0) as u64,
            self.touched,
            self.confidence
        )
    }
}
