// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that have huge pages, and machines that give or deny them.

use toll_linux::sys::Mode;

use super::mock::{GAIN, MIB, MockExperiment, Times, candidate};
use crate::compare::Comparison;
use crate::tune::budget::Step;
use crate::tune::findings::{Advice, Answer};
use crate::tune::today::{Host, SwitchedOff};
#[test]
fn what_is_huge_already_is_compared_with_never() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("all", &[2.01, 2.0]),
        ("never", &[3.0, 3.01]),
    ];
    let mut experiment = MockExperiment::new(times);
    experiment.look.huge = 200 * MIB;
    let got = experiment.tune(600).findings;
    for part in [
        "already huge-page-backed: 78 %",
        "Huge pages make it faster now: 1.",
        "times as fast as without any",
    ] {
        assert!(got.reason.contains(part), "{part}: {}", got.reason);
    }
    assert_eq!(
        (got.advice, got.answer),
        (Advice::DoNothing, Answer::DoNothing)
    );
    let never = got
        .upper_bound
        .unwrap()
        .variant("never")
        .unwrap()
        .speedup
        .unwrap();
    assert!((never.median - 0.666).abs() < 0.01);
    let gain = got.today.unwrap().gain.unwrap();
    assert!((gain.median - 1.5).abs() < 0.02, "{gain:?}");
}

/// A machine at `always`, on which the plan alone gains as much, with less memory.
fn always() -> MockExperiment {
    let mut experiment = MockExperiment::new(&[
        ("none", &[2.0, 2.01]),
        ("never", &[3.0, 3.01]),
        ("all", &[2.0, 2.01]),
        ("plan-only", &[2.1, 2.12]),
    ]);
    experiment.host.mode = Some(Mode::Always);
    experiment.look.huge = 255 * MIB;
    experiment.mock.fill = |variant, _, sample| {
        sample.max_rss = match variant.name.as_str() {
            "never" => 256 * MIB,
            "plan-only" => 258 * MIB,
            _ => 300 * MIB,
        };
    };
    experiment
}

#[test]
fn on_a_machine_at_always_never_and_the_plan_alone_are_measured() {
    let mut experiment = always();
    let got = experiment.tune(600).findings;
    let variants = |comparison: &Option<Comparison>| -> Vec<String> {
        let variants = &comparison.as_ref().unwrap().variants;
        variants
            .iter()
            .map(|variant| variant.name.clone())
            .collect()
    };
    assert_eq!(variants(&got.upper_bound), ["none", "never", "all"]);
    assert_eq!(variants(&got.comparison), ["none", "plan-only", "never"]);
    assert_eq!(
        (
            experiment.under_never,
            experiment.under_plan,
            experiment.tails
        ),
        (1, 0, 1)
    );
    for part in [
        "already huge-page-backed: 99 % (255 MiB of 256 MiB; THP always)",
        "times as fast as without any, for 44 MiB more memory",
        "On a machine at madvise, the plan's",
        "alone would make it 1.4",
        "for 2 MiB more memory",
        "a huge page takes 180 us for 99 of 100 and 4 ms for the longest of 512",
    ] {
        assert!(got.reason.contains(part), "{part}: {}", got.reason);
    }
    assert_eq!(
        (got.advice, got.answer),
        (Advice::DoNothing, Answer::DoNothing)
    );
    let today = got.today.unwrap();
    assert!((today.gain.unwrap().median - 1.5).abs() < 0.02);
    assert!((today.plan_only.unwrap().median - 1.42).abs() < 0.03);
}

#[test]
fn on_a_machine_at_never_another_setting_is_estimated() {
    // Collapsing costs more than it gains.
    let mut experiment = MockExperiment::with_change(
        &[
            ("none", &[2.0, 2.01]),
            ("all", &[2.3, 2.31]),
            ("tunable", &[1.0, 1.01]),
        ],
        "tunable",
    );
    experiment.host = Host {
        mode: Some(Mode::Never),
        ..experiment.host
    };
    let got = experiment.tune(600).findings;
    assert_eq!(
        (got.advice, got.answer),
        (Advice::DoNothing, Answer::DoNothing)
    );
    // The change would request huge pages, which are disabled here.
    assert_eq!(got.comparison, None);
    let estimate = got.today.unwrap().at_madvise.unwrap();
    assert!(estimate.planned_bytes > 0 && estimate.speedup.median > 1.0);
    for part in [
        "they are disabled on this machine (THP never); collapsing memory into huge pages, which \
         still works, makes it 0.870",
        "With THP madvise (as root: `echo madvise >",
        "is estimated to make it",
        "not measured",
    ] {
        assert!(got.reason.contains(part), "{part}: {}", got.reason);
    }
}

#[test]
fn a_kernel_that_cannot_limit_to_what_is_advised_is_named() {
    let mut experiment = always();
    experiment.host.can_limit = false;
    let got = experiment.tune(600).findings;
    assert!(got.reason.contains("Linux 6.18"), "{}", got.reason);
    assert_eq!((got.step, experiment.under_never), (Step::UpperBound, 0));
}

#[test]
fn what_only_the_parent_switched_off_is_given_back_and_measured() {
    let mut experiment = MockExperiment::new(GAIN);
    experiment.look.switched_off = true;
    experiment.host.inherits_off = true;
    let got = experiment.tune(600).findings;
    assert_eq!(got.advice, Advice::Apply, "{}", got.reason);
    assert_eq!(got.today.unwrap().switched_off, Some(SwitchedOff::Parent));
}

#[test]
fn a_program_that_switches_it_off_needs_its_own_switch() {
    let mut experiment = MockExperiment::new(&[]);
    experiment.look.switched_off = true;
    let got = experiment.tune(600).findings;
    assert!(
        got.reason.contains("the program disables them for itself"),
        "{}",
        got.reason
    );

    let times: Times = &[("none", &[2.0, 2.01]), ("own", &[1.5, 1.51])];
    let mut experiment = MockExperiment::new(times);
    experiment.look.switched_off = true;
    experiment.candidates = vec![candidate("own")];
    let got = experiment.tune(600).findings;
    assert_eq!((got.advice, got.step), (Advice::Apply, Step::UpperBound));
    assert!(got.permanent[0].measured.is_some());
}
