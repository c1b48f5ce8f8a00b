// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arithmetic of byte intervals.

/// Whether `part` is at least 75 % of `whole`, enough to act on all of it.
pub(super) fn is_most(part: u64, whole: u64) -> bool {
    part > 0 && u128::from(part) * 4 >= u128::from(whole) * 3
}

/// Sorts intervals and merges adjacent and overlapping ones.
pub(super) fn merged(mut intervals: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    intervals.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
    for (start, end) in intervals {
        match out.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => out.push((start, end)),
        }
    }
    out
}
