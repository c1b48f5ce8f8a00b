// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn find(regex: &str, text: &str) -> (f64, Resource) {
    Metric::new(regex).unwrap().find(text).unwrap()
}

#[test]
fn a_rate_is_better_when_larger() {
    let text = "SET: 81,234.50 requests per second\n";
    assert_eq!(
        find(r"([0-9.,]+) requests", text),
        (81234.5, Resource::MetricRate)
    );
}

#[test]
fn a_unit_of_time_turns_the_direction() {
    assert_eq!(
        find(r"p99 ([0-9.]+)", "p99 12.5 ms"),
        (12.5, Resource::MetricTime)
    );
    assert_eq!(
        find(r"took ([0-9.]+)", "took 3s"),
        (3.0, Resource::MetricTime)
    );
    assert_eq!(
        find(r"took ([0-9.]+)", "took 3 steps"),
        (3.0, Resource::MetricRate)
    );
}

#[test]
fn a_named_group_says_it_outright() {
    assert_eq!(
        find("lat=(?<time>[0-9]+)", "lat=7"),
        (7.0, Resource::MetricTime)
    );
    assert_eq!(
        find("x (?<rate>[0-9]+)", "x 7 s"),
        (7.0, Resource::MetricRate)
    );
}

#[test]
fn the_last_match_counts() {
    assert_eq!(find("n ([0-9]+)", "n 1\nn 2\n").0, 2.0);
}

#[test]
fn what_is_wrong_is_said() {
    assert!(matches!(Metric::new("("), Err(UserError::Usage(_))));
    assert!(matches!(Metric::new("abc"), Err(UserError::Usage(_))));
    let metric = Metric::new("n (.*)").unwrap();
    assert!(matches!(metric.find("nothing"), Err(UserError::Target(_))));
    assert!(matches!(metric.find("n zero"), Err(UserError::Target(_))));
    assert!(matches!(metric.find("n 0"), Err(UserError::Target(_))));
}
