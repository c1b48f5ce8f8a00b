// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

/// Searches among that many numbers; returns what is left, and the lists that were tried.
fn search(count: u32, fails: impl Fn(&[u32]) -> bool) -> (Vec<u32>, usize) {
    let mut search = Search::new((0..count).collect());
    let mut tried = 0;
    while let Some(fewer) = search.attempt() {
        tried += 1;
        search.answer(fails(&fewer));
    }
    (search.best().to_vec(), tried)
}

#[test]
fn what_is_needed_is_left() {
    for needed in [
        &[0][..],
        &[3999],
        &[17, 18],
        &[5, 2000, 3998],
        &[1, 2, 3, 700],
    ] {
        let (left, tried) = search(4000, |list| needed.iter().all(|it| list.contains(it)));
        assert_eq!(left, needed);
        assert!(tried < 100, "{needed:?}: {tried}");
    }
}

#[test]
fn all_stay_if_all_are_needed() {
    let (left, _) = search(7, |list| list.len() == 7);
    assert_eq!(left, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn no_single_number_can_be_left_out() {
    // Any three of the even numbers.
    let fails = |list: &[u32]| list.iter().filter(|it| *it % 2 == 0).count() >= 3;
    let (left, _) = search(101, fails);
    assert_eq!(left.len(), 3);
    assert!(fails(&left));
}

#[test]
fn one_number_is_not_tried_alone() {
    let (left, tried) = search(1, |_| true);
    assert_eq!((left, tried), (vec![0], 0));
}

#[test]
fn lists_have_ranges() {
    assert_eq!(list(&[]), "");
    assert_eq!(list(&[3]), "3");
    assert_eq!(list(&[3, 4, 5, 9, 11, 12]), "3-5,9,11-12");
}
