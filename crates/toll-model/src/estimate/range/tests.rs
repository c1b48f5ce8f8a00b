// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn estimate(low: f64, median: f64, high: f64) -> Estimate {
    Estimate { median, low, high }
}

#[test]
fn what_errs_in_the_same_way_is_no_doubt_of_a_ratio() {
    let same = Doubt::beside(estimate(0.0, 10.0, 30.0), estimate(0.0, 2.0, 6.0));
    assert_eq!((same.low, same.high), (1.0, 1.0));
    // Three times as much here, as much as before there.
    let up = Doubt::beside(estimate(10.0, 10.0, 30.0), estimate(2.0, 2.0, 2.0));
    assert_eq!((up.low, up.high), (1.0, 3.0));
    let nothing = Doubt::beside(estimate(1.0, 2.0, 4.0), estimate(0.0, 0.0, 0.0));
    assert_eq!((nothing.low, nothing.high), (1.0, 1.0));
    let lost = Doubt::beside(estimate(0.0, 2.0, 4.0), estimate(1.0, 1.0, 1.0));
    assert_eq!((lost.low, lost.high), (1.0 / FARTHEST, 2.0));
}

#[test]
fn the_inverse_of_a_doubt_turns_it_round() {
    let doubt = Doubt {
        low: 0.5,
        high: 4.0,
    };
    assert_eq!((doubt.inverse().low, doubt.inverse().high), (0.25, 2.0));
    let all = Doubt::of_error(2.0).inverse();
    assert_eq!((all.low, all.high), (1.0 / 3.0, FARTHEST));
}
