// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unmapping of mappings in huge pages, compared with a model that tracks the users of each 4 KiB
//! page.

#[path = "../src/hugetlb.rs"]
mod hugetlb;

use hugetlb::{any, note, unmap};
use proptest::prelude::*;

const SMALL: usize = 4096;
/// Huge pages of four 4 KiB pages keep the model small.
const PAGE: usize = 4 * SMALL;
const LENGTH: usize = 30;

/// Returns what is unmapped for an unmap of `start..end`.
fn ranges(start: usize, end: usize) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let result = unmap(start, end, |from, to| {
        ranges.push((from, to));
        0
    });
    assert_eq!(result, 0);
    ranges
}

/// Unmaps parts (in 4 KiB pages) of a mapping at `start`, then the rest; a page in use must not be
/// unmapped, and none twice.
fn check(start: usize, cuts: &[(usize, usize)]) -> Result<(), TestCaseError> {
    let pages = (LENGTH * SMALL).div_ceil(PAGE);
    let mut mapped = vec![true; pages];
    let mut wanted = vec![true; LENGTH];
    prop_assert!(note(start, start + LENGTH * SMALL, PAGE));
    prop_assert!(any());
    let mut unmap = |wanted: &mut Vec<bool>, from: usize, to: usize| {
        wanted[from..to].fill(false);
        let ranges = ranges(start + from * SMALL, start + to * SMALL);
        prop_assert!(
            ranges
                .iter()
                .all(|(first, last)| first % PAGE == 0 && last % PAGE == 0)
        );
        for at in ranges
            .iter()
            .flat_map(|(first, last)| (*first..*last).step_by(PAGE))
        {
            let page = (at - start) / PAGE;
            prop_assert!(mapped[page], "page {} twice", page);
            mapped[page] = false;
            let small = page * 4..(page * 4 + 4).min(LENGTH);
            prop_assert!(!wanted[small].contains(&true), "page {} is in use", page);
        }
        Ok(())
    };
    for &(from, to) in cuts {
        if wanted[from..to].iter().all(|wanted| *wanted) {
            unmap(&mut wanted, from, to)?;
        }
    }
    while let Some(from) = wanted.iter().position(|wanted| *wanted) {
        let length = wanted[from..].iter().take_while(|wanted| **wanted).count();
        unmap(&mut wanted, from, from + length)?;
    }
    // Only a hole may keep the surrounding page.
    if cuts.iter().all(|(from, to)| *from == 0 || *to == LENGTH) {
        prop_assert!(!mapped.contains(&true), "{:?}", mapped);
    }
    Ok(())
}

/// Each test uses its own addresses: the table is shared.
fn fresh() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Relaxed) << 30
}

#[test]
fn a_whole_mapping_goes_to_its_last_page() {
    check(fresh(), &[]).unwrap();
}

#[test]
fn other_mappings_are_left_as_they_are() {
    assert_eq!(ranges(SMALL, 3 * SMALL), [(SMALL, 3 * SMALL)]);
    let start = fresh();
    assert!(note(start, start + LENGTH * SMALL, PAGE));
    assert_eq!(ranges(start - SMALL, start), [(start - SMALL, start)]);
    let behind = start + 8 * PAGE;
    assert_eq!(ranges(behind, behind + SMALL), [(behind, behind + SMALL)]);
    // The rest of the last page is unused.
    assert_eq!(ranges(start + LENGTH * SMALL, behind), []);
    ranges(start, behind);
}

#[test]
fn a_call_that_spans_neighbours_is_split_at_the_pages() {
    let start = fresh();
    let (end, pages) = (start + LENGTH * SMALL, start + 8 * PAGE);
    let before = (start - 2 * SMALL, start);
    let behind = (pages, pages + 3 * SMALL);
    // All of it, with both neighbours.
    assert!(note(start, end, PAGE));
    assert_eq!(ranges(before.0, behind.1), [before, (start, pages), behind]);
    assert_eq!(ranges(start, end), [(start, end)], "nothing is left of it");
    // Its end, with the neighbour behind: the page that it shares stays.
    assert!(note(start, end, PAGE));
    let within = start + PAGE + SMALL;
    assert_eq!(
        ranges(within, behind.1),
        [(start + 2 * PAGE, pages), behind]
    );
    // The rest, with the neighbour before it.
    assert_eq!(
        ranges(before.0, within),
        [before, (start, start + 2 * PAGE)]
    );
    // Two adjacent ones, with the gap between them.
    let other = pages + PAGE;
    assert!(note(other, other + PAGE, PAGE) && note(start, end, PAGE));
    assert_eq!(
        ranges(start, other + PAGE),
        [(start, pages), (pages, other), (other, other + PAGE)]
    );
}

#[test]
fn the_first_error_ends_it() {
    let start = fresh();
    assert!(note(start, start + PAGE, PAGE));
    let mut calls = 0;
    let result = unmap(start - SMALL, start + PAGE, |_, _| {
        calls += 1;
        -1
    });
    assert_eq!((result, calls), (-1, 1));
    ranges(start, start + PAGE);
}

proptest! {
    #[test]
    fn ends(front in 0..LENGTH, tail in 0..LENGTH) {
        let cuts = [(0, front), (LENGTH - tail, LENGTH)].map(|(from, to)| (from.min(LENGTH - 1), to));
        check(fresh(), &cuts.map(|(from, to)| (from, to.max(from + 1))))?;
    }

    #[test]
    fn parts(cuts in prop::collection::vec((0..LENGTH, 1..=LENGTH), 0..6)) {
        let cuts: Vec<(usize, usize)> = cuts.into_iter().filter(|(from, to)| from < to).collect();
        check(fresh(), &cuts)?;
    }
}
