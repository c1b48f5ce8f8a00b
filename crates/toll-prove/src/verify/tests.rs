// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_model::stats::Interval;

use super::claim::Claim;
use super::finding::{self, Finding, verified};
use super::*;
use crate::compare::mock::{Mock, rules};

fn interval(low: f64, median: f64, high: f64) -> Interval {
    Interval { median, low, high }
}

#[test]
fn a_saving_is_what_a_run_takes_longer_without_the_line() {
    let saved = finding::saved(interval(0.4, 0.5, 0.8), 1e9).unwrap();
    assert!((saved.median - 1e9).abs() < 1.0);
    assert!((saved.low - 0.25e9).abs() < 1.0 && (saved.high - 1.5e9).abs() < 1.0);
    assert_eq!(finding::saved(interval(0.0, 1.0, f64::INFINITY), 1e9), None);
}

#[test]
fn findings() {
    for (saved, predicted, finding) in [
        (interval(1.0, 2.0, 3.0), 10.0, Finding::Confirmed),
        (interval(-1.0, 2.0, 4.9), 10.0, Finding::Contradicted),
        (interval(-1.0, 2.0, 5.1), 10.0, Finding::CannotTell),
        (interval(-3.0, -2.0, -1.0), 10.0, Finding::Contradicted),
        // Predicted not to pay, and measured not to pay.
        (interval(-3.0, -2.0, -1.0), -5.0, Finding::Contradicted),
        (interval(-3.0, -2.0, 1.0), -5.0, Finding::CannotTell),
    ] {
        assert_eq!(
            finding::finding(Some(&saved), predicted),
            finding,
            "{saved:?}"
        );
    }
    assert_eq!(finding::finding(None, 1.0), Finding::CannotTell);
}

/// Three lines: one as predicted, one without effect, one that cannot be decided.
#[test]
fn each_line_is_judged_by_its_own_variant() {
    let claim = |memory: &str| Claim {
        memory: memory.to_owned(),
        offset: 0,
        length: 2 << 20,
        predicted_ns: 1e9,
        regions: Vec::new(),
        whole_heap: false,
    };
    let mut mock = Mock::new(&[
        ("plan", &[2.0, 2.001]),
        ("without 1", &[3.0, 3.001]),
        ("without 2", &[2.001, 2.0]),
        ("without 3", &[1.2, 4.0]),
    ]);
    let variants = [
        Variant::plan("p"),
        Variant::without(1, "a"),
        Variant::without(2, "b"),
        Variant::without(3, "c"),
    ];
    let rules = Rules {
        each: true,
        ..rules(Some(8), 9999.0)
    };
    let comparison = compare(&mut mock, "x", &variants, &rules, None).unwrap();
    let lines = verified(&[claim("a"), claim("b"), claim("c")], &comparison);
    let found: Vec<Finding> = lines.iter().map(|line| line.verdict).collect();
    assert_eq!(
        found,
        [
            Finding::Confirmed,
            Finding::Contradicted,
            Finding::CannotTell
        ]
    );
    let saved = lines[0].saved_ns.unwrap();
    assert!((saved.median - 1e9).abs() < 1e7, "{saved:?}");
    let text = text::render(&comparison, &lines);
    assert!(
        text.contains("confirmed") && text.contains("8 pairs"),
        "{text}"
    );
}
