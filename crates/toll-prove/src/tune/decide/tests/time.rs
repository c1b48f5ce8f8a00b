// SPDX-License-Identifier: MIT OR Apache-2.0
//! The use of the time limit.

use toll_act::permanent::Permanent;

use super::mock::{GAIN, MockExperiment, Times, candidate};
use crate::tune::budget::Step;
/// With so much noise that more pairs could always change the answer.
const NOISE: Times = &[
    ("none", &[2.0, 2.6, 1.8, 2.2]),
    ("plan", &[1.9, 2.5, 1.7, 2.4, 2.0]),
    ("all", &[1.9, 1.5, 2.6, 2.0, 2.1]),
];

#[test]
fn the_time_limit_is_told_from_other_ends() {
    let clear: Times = GAIN;
    assert!(
        !MockExperiment::new(clear)
            .tune(600)
            .findings
            .time_limit_reached
    );
    assert!(
        MockExperiment::new(NOISE)
            .tune(200)
            .findings
            .time_limit_reached
    );
    let nothing: Times = &[("none", &[2.0, 2.004]), ("all", &[1.99, 2.0])];
    assert!(
        !MockExperiment::new(nothing)
            .tune(600)
            .findings
            .time_limit_reached
    );
    let long: Times = &[("none", &[900.0]), ("plan", &[900.0]), ("all", &[900.0])];
    assert!(
        MockExperiment::new(long)
            .tune(60)
            .findings
            .time_limit_reached
    );
}

#[test]
fn pairs_come_before_a_second_profile() {
    let mut experiment = MockExperiment::new(NOISE);
    experiment.slow = [0.0, 20.0];
    let got = experiment.tune(200).findings;
    assert!(got.time_limit_reached);
    assert_eq!(experiment.under_plan, 0, "{:?}", got.spent);
    let of = |step: Step| got.spent.iter().find(|it| it.step == step);
    assert_eq!(of(Step::After), None);
    // Only a twentieth of the time left at the start of the step is reserved.
    let left = 200.0 - of(Step::Compare).map_or(0.0, |it| it.allowed_seconds);
    let before: f64 = got.spent.iter().map(|it| it.seconds).sum::<f64>()
        - of(Step::Compare).map_or(0.0, |it| it.seconds);
    assert!(left - before < 10.0, "{:?}", got.spent);
    let all: f64 = got.spent.iter().map(|it| it.seconds).sum();
    assert!((all - got.seconds).abs() < 1.0, "{:?}", got.spent);

    let mut experiment = MockExperiment::new(GAIN);
    experiment.slow = [0.0, 20.0];
    let got = experiment.tune(600).findings;
    assert_eq!(experiment.under_plan, 1);
    assert_eq!(got.spent.last().map(|it| it.step), Some(Step::After));
}

/// Pairs of the upper bound and of the last comparison within 4 minutes, and variants of the
/// latter, for a program of 2.5 s with noise `scatter`.
fn rounds_of_seconds(slow: [f64; 2], scatter: f64) -> [usize; 3] {
    let times = |center: f64, order: [f64; 5]| order.map(|at| center * (1.0 + scatter * at));
    let (none, all) = (
        times(2.5, [0.0, 1.0, -0.7, 0.4, -0.3]),
        times(2.2, [0.3, -0.6, 1.0, -0.4, 0.0]),
    );
    let variants: Vec<(&str, &[f64])> = ["plan", "all", "tunable"]
        .map(|variant| (variant, &all[..]))
        .into();
    let mut experiment = MockExperiment::new(&[&[("none", &none[..])], &variants[..]].concat());
    (experiment.slow, experiment.candidates) = (slow, vec![candidate("tunable")]);
    let got = experiment.tune(240).findings;
    let (upper_bound, last) = (got.upper_bound.unwrap(), got.comparison.unwrap());
    [
        upper_bound.pairs as usize,
        last.pairs as usize,
        last.variants.len(),
    ]
}

#[test]
fn a_program_of_seconds_gets_rounds_enough_within_minutes() {
    const ALL: f64 = f64::MAX;
    // Costs known or unknown; a recording of 15 s or of the maximum.
    for (slow, scatter, expected) in [
        ([0.0, 15.0], 0.01, [5, 5, 4]),
        ([ALL, ALL], 0.01, [5, 5, 3]),
        ([0.0, 15.0], 0.2, [12, 10, 3]),
        ([0.0, ALL], 0.2, [12, 7, 4]),
        ([ALL, 15.0], 0.2, [12, 8, 3]),
        ([ALL, ALL], 0.2, [12, 7, 3]),
    ] {
        let got = rounds_of_seconds(slow, scatter);
        let enough = got.iter().zip(expected).all(|(got, least)| *got >= least);
        assert!(enough, "{slow:?}, {scatter}: {got:?}");
    }
}

#[test]
fn few_variants_where_time_is_short() {
    let times: Times = &[
        ("none", &[10.0]),
        ("plan", &[8.0]),
        ("all", &[8.0]),
        ("tunable", &[8.0]),
    ];
    let mut experiment = MockExperiment::with_change(times, "tunable");
    let got = experiment.tune(600).findings;
    let names: Vec<&str> = got
        .comparison
        .as_ref()
        .unwrap()
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    assert_eq!(names, ["none", "plan"]);
    assert!(experiment.mock.clock <= 600.0 + 10.0);
    let not = |p: &Permanent| p.measured.is_none() && p.state == "not measured";
    assert!(got.permanent.iter().all(not), "{:?}", got.permanent);
}
