// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_rate_is_turned_into_a_time() {
    let sample = |rate| Sample {
        metric: Some(rate),
        ..Sample::default()
    };
    let before = Resource::MetricRate.time_of(&sample(1000.0));
    let after = Resource::MetricRate.time_of(&sample(1500.0));
    assert!((before / after - 1.5).abs() < 1e-12);
    assert_eq!(Resource::MetricRate.value_of(&sample(1500.0)), 1500.0);
}
