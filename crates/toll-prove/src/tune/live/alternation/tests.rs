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

#[test]
fn windows_before_the_first_change_take_a_fifth_of_the_time_at_most() {
    let before = |left: f64, window: f64| {
        windows_before(
            Duration::from_secs_f64(left),
            Duration::from_secs_f64(window),
        )
    };
    assert_eq!(before(100.0, 2.0), BEFORE + 1);
    assert_eq!(before(1000.0, 2.0), BEFORE + 1);
    assert_eq!(before(100.0, 4.0), 5);
    assert_eq!(before(100.0, 7.0), 0);
    assert_eq!(before(4.4, 0.3), 0);
    assert_eq!(before(0.0, 2.0), 0);
}
