// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is unmapped of mappings in huge pages, against a model that knows of each small page who wants it.

#[path = "../src/hugetlb.rs"]
mod hugetlb;

use hugetlb::{any, note, to_unmap};
use proptest::prelude::*;

const SMALL: usize = 4096;
/// Pages of 4 small ones keep the model small.
const PAGE: usize = 4 * SMALL;
const LENGTH: usize = 30;

/// Unmaps parts (in small pages) of a mapping at `start`, then all that the program still has; no page
/// may go that the program still has, and none twice.
fn check(start: usize, cuts: &[(usize, usize)]) -> Result<(), TestCaseError> {
    let pages = (LENGTH * SMALL).div_ceil(PAGE);
    let mut mapped = vec![true; pages];
    let mut wanted = vec![true; LENGTH];
    note(start, start + LENGTH * SMALL, PAGE);
    prop_assert!(any());
    let mut unmap = |wanted: &mut Vec<bool>, from: usize, to: usize| {
        wanted[from..to].fill(false);
        let (first, last) = to_unmap(start + from * SMALL, (to - from) * SMALL);
        prop_assert_eq!((first % PAGE, last % PAGE), (0, 0));
        for at in (first..last).step_by(PAGE) {
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
    // Only a hole may keep the page around it.
    if cuts.iter().all(|(from, to)| *from == 0 || *to == LENGTH) {
        prop_assert!(!mapped.contains(&true), "{:?}", mapped);
    }
    Ok(())
}

/// Each test has addresses of its own: the table is shared.
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
    assert_eq!(to_unmap(SMALL, 5000), (SMALL, SMALL + 5000));
    let start = fresh();
    note(start, start + LENGTH * SMALL, PAGE);
    assert_eq!(to_unmap(start - SMALL, SMALL), (start - SMALL, start));
    let behind = start + LENGTH * SMALL;
    assert_eq!(to_unmap(behind, SMALL), (behind, behind + SMALL));
    to_unmap(start, LENGTH * SMALL);
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
