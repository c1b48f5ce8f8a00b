// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bill: the resident memory by size of the page, and by reason. The lines add up to it.

use std::collections::BTreeMap;

use serde::Serialize;
use toll_model::eligibility::Reason;
use toll_model::{PAGE, units};

use super::entry::Kind;
use super::fixes::Fixes;
use super::reading::Reading;

/// A line of the bill.
#[derive(Debug, Clone, Serialize)]
pub struct Line<'a> {
    /// Size of the pages.
    pub page_bytes: u64,
    /// Memory in huge pages: the kind of the mappings.
    pub kind: Option<Kind>,
    /// Memory in 4 KiB pages: the reason.
    pub reason: Option<Reason>,
    pub title: String,
    pub bytes: u64,
    /// Number of mappings.
    pub mappings: usize,
    pub fix: Option<&'a str>,
}

/// Bytes and number of mappings.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    mappings: usize,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.mappings += 1;
    }
}

/// Returns the lines: huge pages first, the largest first.
pub fn lines<'a>(reading: &Reading, fixes: &'a Fixes) -> Vec<Line<'a>> {
    let mut huge: BTreeMap<(u64, Kind), Sum> = BTreeMap::new();
    let mut small: BTreeMap<Reason, Sum> = BTreeMap::new();
    for entry in &reading.entries {
        if entry.huge > 0 {
            let of = (entry.huge_page, entry.kind);
            huge.entry(of).or_default().add(entry.huge);
        }
        for share in &entry.shares {
            small.entry(share.reason).or_default().add(share.bytes);
        }
    }
    if !reading.has_mappings && reading.resident() > 0 {
        small.entry(Reason::Unread).or_default().bytes = reading.resident();
    }
    let huge = huge
        .into_iter()
        .map(|((page, kind), sum)| of_huge(page, kind, sum));
    let small = small
        .into_iter()
        .map(|(reason, sum)| of_small(reason, sum, fixes));
    [
        largest_first(huge.collect()),
        largest_first(small.collect()),
    ]
    .concat()
}

fn of_huge<'a>(page: u64, kind: Kind, sum: Sum) -> Line<'a> {
    let size = units::format_size(page);
    Line {
        page_bytes: page,
        kind: Some(kind),
        reason: None,
        title: format!("{size} pages: {}", kind.title()),
        bytes: sum.bytes,
        mappings: sum.mappings,
        fix: None,
    }
}

fn of_small(reason: Reason, sum: Sum, fixes: &Fixes) -> Line<'_> {
    let title = match reason {
        Reason::Unread => reason.title().to_owned(),
        _ => format!("4 KiB: {}", reason.title()),
    };
    Line {
        page_bytes: PAGE,
        kind: None,
        reason: Some(reason),
        title,
        bytes: sum.bytes,
        mappings: sum.mappings,
        fix: fixes.of(reason),
    }
}

fn largest_first(mut lines: Vec<Line<'_>>) -> Vec<Line<'_>> {
    lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
    lines
}
