// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn bound(text: &str) -> Bound {
    Bound::try_from(text.to_owned()).unwrap()
}

fn problem(text: &str) -> String {
    Bound::try_from(text.to_owned()).unwrap_err()
}

/// The verdict for a quantity without an interval.
fn exact(text: &str, value: f64) -> Verdict {
    bound(text).verdict(value, value)
}

#[test]
fn a_goal_is_met_if_the_whole_interval_is_on_its_side() {
    let limit = bound("change <= -90 %");
    assert_eq!(limit.verdict(0.02, 0.09), Verdict::Met);
    assert_eq!(limit.verdict(0.05, 0.2), Verdict::NotShown);
    assert_eq!(limit.verdict(0.2, 0.3), Verdict::NotMet);
    let least = bound("reduction_factor >= 100");
    assert_eq!(least.verdict(120.0, 150.0), Verdict::Met);
    assert_eq!(least.verdict(90.0, 150.0), Verdict::NotShown);
    assert_eq!(least.verdict(1.0, 2.0), Verdict::NotMet);
}

#[test]
fn the_bound_itself_meets_the_goal_unless_it_is_strict() {
    assert_eq!(exact("change <= -90 %", 10.0 / 100.0), Verdict::Met);
    assert_eq!(exact("change <= +5 %", 105.0 / 100.0), Verdict::Met);
    assert_eq!(exact("change <= 0 %", 1.0), Verdict::Met);
    assert_eq!(exact("change <= 0 %", 1.001), Verdict::NotMet);
    assert_eq!(exact("saved_share >= 90 %", 0.9), Verdict::Met);
    assert_eq!(exact("value <= 8192", 8192.0), Verdict::Met);
    assert_eq!(exact("value < 8192", 8192.0), Verdict::NotMet);
    assert_eq!(exact("value < 8192", 8191.0), Verdict::Met);
    assert_eq!(exact("value > 3", 3.0), Verdict::NotMet);
}

#[test]
fn a_change_may_be_limited_in_both_directions() {
    let limit = bound("change within 2 %");
    assert_eq!(limit.verdict(0.98, 1.02), Verdict::Met);
    assert_eq!(limit.verdict(1.03, 1.04), Verdict::NotMet);
    assert_eq!(limit.verdict(0.9, 0.97), Verdict::NotMet);
    assert_eq!(limit.verdict(0.9, 1.1), Verdict::NotShown);
}

#[test]
fn quantities_compare_configurations() {
    assert_eq!(Quantity::Value.of(2.0, 8.0, 1.0), 2.0);
    assert_eq!(Quantity::Difference.of(2.0, 8.0, 1.0), -6.0);
    assert_eq!(Quantity::Change.of(2.0, 8.0, 1.0), 0.25);
    assert_eq!(Quantity::RelativeCost.of(2.0, 8.0, 1.0), 0.25);
    assert_eq!(Quantity::ReductionFactor.of(2.0, 8.0, 1.0), 4.0);
    assert_eq!(Quantity::SavedShare.of(2.0, 8.0, 0.0), 0.75);
    assert!(!bound("value <= 1").is_relative());
    assert!(bound("difference <= 1").is_relative());
}

#[test]
fn the_worst_interval_reaches_farthest_to_the_wrong_side() {
    let most = bound("relative_cost <= 1.02");
    assert!(most.badness(0.9, 1.1) > most.badness(1.0, 1.05));
    let least = bound("value >= 10");
    assert!(least.badness(5.0, 30.0) > least.badness(9.0, 11.0));
    let within = bound("change within 2 %");
    assert!(within.badness(0.8, 1.0) > within.badness(1.0, 1.1));
}

#[test]
fn a_bound_without_a_form_is_refused() {
    assert!(problem("").contains("QUANTITY RELATION NUMBER"));
    assert!(problem("change <=").contains("QUANTITY RELATION NUMBER"));
    assert!(problem("change <= five %").contains("QUANTITY RELATION NUMBER"));
    assert!(problem("value <= inf").contains("QUANTITY RELATION NUMBER"));
    assert!(problem("cost <= 5 %").contains("cost: expected one of value, difference"));
    assert!(problem("change == 5 %").contains("expected one of <, <="));
    assert!(problem("change <= 0.05").contains("is a percentage"));
}

#[test]
fn an_impossible_bound_is_refused() {
    assert!(problem("change <= -101 %").contains("cannot be met"));
    assert!(problem("change < -100 %").contains("cannot be met"));
    assert!(problem("relative_cost <= -1").contains("cannot be met"));
    assert!(problem("reduction_factor < 0").contains("cannot be met"));
    assert!(problem("change within 0 %").contains("cannot be met"));
    assert!(problem("change >= -100 %").contains("is always met"));
    assert!(problem("value within 5 %").contains("only for a change"));
    assert_eq!(exact("change <= -100 %", 0.0), Verdict::Met);
    assert_eq!(exact("difference <= -5", -6.0), Verdict::Met);
}
