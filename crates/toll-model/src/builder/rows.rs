// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rows: merged where neighbours are equal, and rounded.

use super::cell::MAX_CELL;
use crate::PAGE;
use crate::profile::Row;

/// Neighbours are merged if their counts differ by less than this share of the larger.
const SAME: f64 = 0.02;

/// Appends a row, or merges it with its left neighbour if both are equal.
pub(super) fn push(rows: &mut Vec<Row>, row: Row) {
    match rows.last_mut() {
        Some(last) if may_merge(last, &row) => join(last, &row),
        _ => rows.push(row),
    }
}

/// Rounds counts to three decimals and means to two: more only makes files longer.
pub(super) fn tidy(row: &mut Row) {
    let thousandths = |count: f64| match count * 1000.0 {
        scaled if scaled.is_finite() => scaled.round() / 1000.0,
        _ => count,
    };
    let hundredths = |mean: f32| (mean * 100.0).round() / 100.0;
    row.accesses = thousandths(row.accesses);
    row.misses = thousandths(row.misses);
    row.misses_huge = row.misses_huge.map(thousandths);
    row.l2_spared = thousandths(row.l2_spared);
    row.reuse_log2 = row.reuse_log2.map(hundredths);
    row.dependent = row.dependent.map(|share| hundredths(share).clamp(0.0, 1.0));
}

/// Whether two neighbours are equal per page, so that one row can represent both. Rows are limited
/// to 256 KiB, which keeps the error small for a row that crosses a region's border.
fn may_merge(left: &Row, right: &Row) -> bool {
    let pages = [left.pages() as f64, right.pages() as f64];
    let same = |a: f64, b: f64| {
        let (a, b) = (a / pages[0], b / pages[1]);
        (a - b).abs() <= SAME * a.max(b)
    };
    let alike = |a: Option<f32>, b: Option<f32>, within: f32| match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= within,
        (None, None) => true,
        _ => false,
    };
    left.end() == right.offset
        && left.length + right.length <= PAGE << MAX_CELL
        && left.huge == right.huge
        && left.misses_huge.is_some() == right.misses_huge.is_some()
        && same(left.misses, right.misses)
        && same(left.accesses, right.accesses)
        && same(
            left.misses_huge.unwrap_or(0.0),
            right.misses_huge.unwrap_or(0.0),
        )
        && same(left.l2_spared, right.l2_spared)
        && same(left.touched_pages.into(), right.touched_pages.into())
        && alike(left.reuse_log2, right.reuse_log2, 0.25)
        && alike(left.dependent, right.dependent, 0.05)
}

/// Merges `right` into `left`, its left neighbour.
fn join(left: &mut Row, right: &Row) {
    let part = match left.misses + right.misses {
        0.0 => 0.5,
        misses => (right.misses / misses) as f32,
    };
    let mean = |a: Option<f32>, b: Option<f32>| Some(a? * (1.0 - part) + b? * part);
    left.reuse_log2 = mean(left.reuse_log2, right.reuse_log2);
    left.dependent = mean(left.dependent, right.dependent);
    left.misses_huge = left
        .misses_huge
        .map(|a| a + right.misses_huge.unwrap_or(0.0));
    left.l2_spared += right.l2_spared;
    left.length += right.length;
    left.accesses += right.accesses;
    left.misses += right.misses;
    left.touched_pages += right.touched_pages;
}
