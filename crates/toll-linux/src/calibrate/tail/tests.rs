// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn the_tail_is_what_one_in_a_hundred_exceeds_and_the_longest() {
    let times: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
    let expected = Tail {
        faults: 1000,
        p99: 990.0,
        longest: 1000.0,
    };
    assert_eq!(tail(times), Some(expected));
    assert_eq!(tail(vec![1.0; FAULTS - 1]), None);
}

#[test]
fn small_faults_can_be_timed_anywhere_and_memory_is_no_more_than_allowed() {
    let tails = fault_tails(Duration::from_secs(600), 8 << 20);
    let small = tails.small.unwrap();
    // Four regions at a time.
    assert_eq!(small.faults, FAULTS);
    assert!(0.0 < small.p99 && small.p99 <= small.longest, "{small:?}");
    assert_eq!(fault_tails(Duration::ZERO, 8 << 20), Tails::default());
}
