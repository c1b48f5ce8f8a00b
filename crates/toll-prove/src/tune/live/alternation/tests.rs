// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn windows_are_long_against_changes_and_fit_into_the_limit() {
    let seconds = |regions, left| expected(regions, Duration::from_secs(left)).as_secs_f64();
    assert_eq!(seconds(1, 600), 2.0);
    assert_eq!(seconds(128, 600), 6.4);
    assert_eq!(seconds(128, 100), 2.0);
    assert_eq!(seconds(1 << 40, 6000), 30.0);
}

#[test]
fn a_rate_is_that_of_all_windows_together() {
    let begun = Instant::now();
    let at = |seconds: u64, units: f64| Reading {
        at: begun + Duration::from_secs(seconds),
        units,
        cpu: Duration::ZERO,
        cycles: None,
    };
    let mut rate = Rate::default();
    assert_eq!(rate.per_second(), None);
    rate.add(&at(0, 10.0), &at(1, 40.0));
    rate.add(&at(5, 100.0), &at(8, 110.0));
    assert_eq!(rate.per_second(), Some(10.0));
}
