// SPDX-License-Identifier: MIT OR Apache-2.0
//! The 75 % rule compared with a model that inspects each page.

#[allow(dead_code)]
#[path = "../src/regions.rs"]
mod regions;

use proptest::prelude::*;
use regions::{Range, planned};
use toll_wire::{PAGE, REGION};

fn ranges(block: Range, intervals: &[(u64, u64)]) -> Vec<Range> {
    let mut found = Vec::new();
    planned(block, intervals.iter().copied(), |range| found.push(range));
    found
}

/// Returns the bytes of `part` that lie in one of the intervals.
fn covered(block: Range, intervals: &[(u64, u64)], part: Range) -> u64 {
    let mut bytes = 0;
    let mut done = part.start;
    for &(start, end) in intervals {
        let start = block.start.saturating_add(start).max(done);
        let end = block.start.saturating_add(end).min(part.end).min(block.end);
        bytes += end.saturating_sub(start);
        done = done.max(end);
    }
    bytes
}

/// A block with unaligned ends, and sorted intervals that may touch and overlap.
fn cases() -> impl Strategy<Value = (Range, Vec<(u64, u64)>)> {
    let unit = prop_oneof![Just(1u64), Just(PAGE), Just(REGION / 8)];
    let step = (0u64..24, unit).prop_map(|(count, unit)| count * unit);
    let interval = (step.clone(), step);
    (
        0..3 * REGION,
        1..20 * REGION,
        prop::collection::vec(interval, 0..12),
        any::<bool>(),
    )
        .prop_map(|(start, length, steps, to_the_end)| {
            let start = (1 << 40) + start;
            let block = Range {
                start,
                end: start + length,
            };
            let mut at = 0u64;
            let mut intervals: Vec<_> = steps
                .iter()
                .map(|&(gap, length)| {
                    at += gap;
                    (at, at + 2 * length)
                })
                .collect();
            if let Some(last) = intervals.last_mut().filter(|_| to_the_end) {
                last.1 = u64::MAX;
            }
            (block, intervals)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whole regions are acted on if and only if 75 % of them is planned.
    #[test]
    fn a_region_is_in_exactly_when_three_quarters_are_planned((block, intervals) in cases()) {
        let found = ranges(block, &intervals);
        let pages = block.pages();
        let mut start = pages.start.next_multiple_of(REGION);
        while start + REGION <= pages.end {
            let region = Range { start, end: start + REGION };
            let is_in = found.iter().any(|r| r.start <= region.start && region.end <= r.end);
            let apart = found.iter().all(|r| r.end <= region.start || region.end <= r.start);
            let enough = covered(block, &intervals, region) >= REGION / 4 * 3;
            prop_assert_eq!(is_in, enough);
            prop_assert!(is_in || apart);
            start += REGION;
        }
    }

    /// No range leaves the block's pages, or covers a piece at its ends if less than 75 % of the
    /// region or of the piece is planned.
    #[test]
    fn nothing_else_is_handed_out((block, intervals) in cases()) {
        let pages = block.pages();
        let mut done = 0;
        for range in ranges(block, &intervals) {
            prop_assert!(pages.start <= range.start && range.end <= pages.end);
            prop_assert!(range.start < range.end);
            prop_assert!(done == 0 || done < range.start, "ranges touch");
            prop_assert!(range.start % PAGE == 0 && range.end % PAGE == 0);
            done = range.end;
            for (start, end) in [
                (range.start, range.start.next_multiple_of(REGION).min(range.end)),
                (range.end & !(REGION - 1), range.end),
            ] {
                let piece = Range {
                    start: start.max(block.start).max(range.start),
                    end: end.min(block.end),
                };
                if piece.start < piece.end {
                    let bytes = covered(block, &intervals, piece);
                    let whole = bytes == piece.end - piece.start;
                    prop_assert!(whole || bytes >= REGION / 4 * 3);
                }
            }
        }
    }

    /// A plan for all of a block is one range: no mapping is split.
    #[test]
    fn a_whole_block_stays_whole(start in 0..3 * REGION, length in 2 * REGION..20 * REGION) {
        let start = (1 << 40) + start;
        let block = Range { start, end: start + length };
        prop_assert_eq!(ranges(block, &[(0, u64::MAX)]), vec![block.pages()]);
    }
}
