// SPDX-License-Identifier: MIT OR Apache-2.0
//! Early ends: nothing to gain, interrupts, and errors.

use std::time::Duration;

use super::mock::{GAIN, MIB, MockExperiment, Times};
use crate::compare::{Sample, Variant};
use crate::tune::budget::Step;
use crate::tune::decide::tune;
use crate::tune::findings::{Advice, Findings};
use crate::tune::text;
#[test]
fn a_small_working_set_ends_it_at_once() {
    let mut experiment = MockExperiment::new(&[]);
    experiment.look.working_set = 4 * MIB;
    let got = experiment.tune(600).findings;
    assert_eq!((got.advice, got.step), (Advice::DoNothing, Step::Look));
    assert!(
        got.reason.contains("reach of this CPU's TLB"),
        "{}",
        got.reason
    );
    assert_eq!(experiment.steps, [Step::Look]);
    assert_eq!((got.verdict, got.speedup, got.pairs), (None, None, None));
}

#[test]
fn a_look_that_was_cut_short_proves_nothing() {
    let mut experiment = MockExperiment::new(&[("none", &[1.0]), ("all", &[1.0])]);
    (experiment.look.working_set, experiment.ended) = (4 * MIB, None);
    experiment.tune(600);
    assert!(experiment.steps.contains(&Step::UpperBound));
}

#[test]
fn a_upper_bound_within_two_percent_ends_it() {
    let mut experiment = MockExperiment::new(&[("none", &[2.0, 2.004]), ("all", &[1.99, 2.0])]);
    let got = experiment.tune(600).findings;
    assert_eq!(
        (got.advice, got.step),
        (Advice::DoNothing, Step::UpperBound)
    );
    assert!(got.reason.contains("+/- 2 %"), "{}", got.reason);
    assert!(got.speedup_all.is_some() && got.speedup.is_none());
    assert!(got.permanent.is_empty());
}

#[test]
fn a_program_that_fails_in_each_run_is_noted_once() {
    let failing = |experiment: &mut MockExperiment| {
        experiment.ended = Some(2);
        experiment.mock.fill = |_, _, sample| sample.status = 2;
        experiment.tune(600).findings
    };
    let said = |found: &Findings| {
        let text = text::render(found);
        text.matches("the program ends with status 2 in each run")
            .count()
    };
    let mut small = MockExperiment::new(&[]);
    small.look.working_set = 4 * MIB;
    let got = failing(&mut small);
    assert_eq!((got.status, said(&got)), (Some(2), 1));

    let got = failing(&mut MockExperiment::new(&[
        ("none", &[2.0, 2.004]),
        ("all", &[1.99, 2.0]),
    ]));
    assert_eq!((got.status, said(&got)), (Some(2), 1));
}

#[test]
fn a_run_longer_than_the_limit_is_said_and_ends_in_time() {
    let times: Times = &[("none", &[900.0]), ("plan", &[900.0]), ("all", &[900.0])];
    let mut experiment = MockExperiment::new(times);
    let got = experiment.tune(60).findings;
    assert_eq!(got.advice, Advice::DoNothing);
    assert!(got.reason.contains("--within"), "{}", got.reason);
    assert!(experiment.mock.clock <= 60.0, "{}", experiment.mock.clock);
}

#[test]
fn ctrl_c_in_each_step_keeps_what_was_there() {
    use Step::{After, Compare, Costs, Look, Plan, Profile, UpperBound};
    for step in [Look, UpperBound, Costs, Profile, Plan, Compare, After] {
        let mut experiment = MockExperiment::new(GAIN);
        experiment.interrupt = Some(step);
        let results = experiment.tune(600);
        assert!(!results.findings.complete, "{step:?}");
        assert!(results.findings.reason.contains("interrupted"), "{step:?}");
        assert_eq!(
            experiment.steps.last(),
            Some(&match step {
                // The user sees costs and profile as one step.
                Costs => Profile,
                other => other,
            })
        );
        assert!(experiment.kept > 0, "{step:?}");
        assert_eq!(
            results.profile.is_some(),
            ![Look, UpperBound].contains(&step),
            "{step:?}"
        );
    }
}

#[test]
fn an_output_that_the_plan_changes_is_an_error() {
    let times: Times = &[("none", &[2.0]), ("all", &[1.5])];
    let mut experiment = MockExperiment::new(times);
    experiment.mock.fill = |variant: &Variant, _: usize, sample: &mut Sample| {
        sample.output = Some([variant.name.len() as u64, 0]);
    };
    let error = tune(&mut experiment, "x", Duration::from_secs(600)).unwrap_err();
    assert!(error.to_string().contains("OUTPUT DIFFERS"), "{error}");
}
