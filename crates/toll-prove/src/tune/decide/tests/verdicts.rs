// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conclusions from the comparisons.

use std::time::Duration;

use toll_model::profile::Profile;
use toll_model::site::SiteKind;
use toll_model::stats::Verdict;

use super::mock::{GAIN, MIB, MockExperiment, Times, candidate, profile};
use crate::compare::{Sample, Variant};
use crate::tune::budget::Step;
use crate::tune::decide::resume;
use crate::tune::findings::{Advice, Answer};
use crate::tune::text;
#[test]
fn a_gain_goes_through_all_steps_and_is_applied() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("plan", &[1.5, 1.51]),
        ("all", &[1.5, 1.51]),
        ("tunable", &[1.45, 1.46]),
    ];
    let mut experiment = MockExperiment::with_change(times, "tunable");
    let results = experiment.tune(600);
    let got = &results.findings;
    assert_eq!(
        (got.advice, got.verdict),
        (Advice::Apply, Some(Verdict::Faster)),
        "{got:?}"
    );
    assert!((got.speedup.unwrap().median - 1.33).abs() < 0.02);
    assert!(
        got.planned_bytes
            .is_some_and(|bytes| bytes > 200 * MIB && bytes <= 256 * MIB)
    );
    assert!(got.predicted_speedup.is_some());
    assert_eq!(got.permanent[0].state, "measured");
    assert!(results.plan.is_some() && results.after.is_some());
    assert_eq!(experiment.under_plan, 1);
    use Step::{After, Compare, Costs, Look, Plan, Profile, UpperBound};
    assert_eq!(
        experiment.steps,
        [Look, UpperBound, Costs, Profile, Plan, Compare, After]
    );
    assert!(experiment.mock.clock <= 600.0, "{}", experiment.mock.clock);
}

#[test]
fn an_undecided_answer_says_what_settles_it_and_is_gone_on_with() {
    let times: Times = &[
        ("none", &[2.0, 2.2, 1.9, 2.1, 2.05]),
        ("plan", &[1.95, 2.15, 1.75, 2.05, 1.85, 2.1, 1.95]),
        ("all", &[1.8, 1.7, 1.9, 2.0, 1.6]),
    ];
    let mut experiment = MockExperiment::new(times);
    let first = experiment.tune(200);
    let got = &first.findings;
    assert_eq!(
        (got.advice, got.answer),
        (Advice::DoNothing, Answer::Undecided),
        "{}",
        got.reason
    );
    assert!(text::render(got).contains("Undecided: "), "{got:?}");
    let settle = got.settle.clone().unwrap();
    let before = got.comparison.clone().unwrap();
    assert!(settle.pairs > before.pairs, "{settle:?}");
    // Each missing round, and one warm-up round, takes about two seconds per variant.
    let runs = f64::from(settle.pairs - before.pairs + 1) * before.variants.len() as f64;
    assert!((1.7..2.2).contains(&(settle.seconds / runs)), "{settle:?}");

    let mut experiment = MockExperiment::new(times);
    let within = Duration::from_secs_f64(settle.seconds * 3.0);
    let second = resume(&mut experiment, first.clone(), within)
        .unwrap()
        .findings;
    let after = second.comparison.clone().unwrap();
    assert!(
        after.pairs > before.pairs,
        "{} and {}",
        after.pairs,
        before.pairs
    );
    for (old, new) in before.variants.iter().zip(&after.variants) {
        let kept = before.pairs as usize + 1;
        assert_eq!(old.runs[..kept], new.runs[..kept]);
    }
    assert_eq!(
        (second.advice, second.answer),
        (Advice::Apply, Answer::Apply),
        "{}",
        second.reason
    );
    assert_eq!(second.settle, None);
    assert_eq!(experiment.steps, [Step::Compare]);
}

#[test]
fn there_must_be_something_to_go_on_with() {
    let mut experiment = MockExperiment::new(&[]);
    experiment.look.working_set = 4 * MIB;
    let results = experiment.tune(600);
    assert_eq!(results.findings.answer, Answer::DoNothing);
    let error = resume(&mut experiment, results, Duration::from_secs(60)).unwrap_err();
    assert!(error.to_string().contains("no comparison"), "{error}");
}

#[test]
fn a_gain_that_is_lost_in_noise_is_not_advised() {
    let times: Times = &[
        ("none", &[2.0, 2.6, 1.8, 2.2]),
        ("plan", &[1.9, 2.5, 1.7, 2.4, 2.0]),
        ("all", &[1.9, 1.5, 2.6, 2.0, 2.1]),
    ];
    let got = MockExperiment::new(times).tune(200).findings;
    assert_eq!(got.advice, Advice::DoNothing);
    assert_eq!(got.verdict, Some(Verdict::CannotTell));
    assert!(got.reason.contains("it is not clear"), "{}", got.reason);
    assert!(got.seconds <= 200.0);
}

#[test]
fn a_gain_that_takes_much_more_memory_is_advised_only_if_that_was_allowed() {
    let tunable: Times = &[("tunable", &[1.5, 1.51])];
    let times = [GAIN, tunable].concat();
    type Fill = fn(&Variant, usize, &mut Sample);
    let tuned = |allowed: f64, fill: Fill| {
        let mut experiment = MockExperiment::with_change(&times, "tunable");
        experiment.allowed_growth = allowed;
        experiment.mock.fill = fill;
        experiment.tune(600).findings
    };
    let both: Fill = |variant, _, sample| {
        let dear = ["plan", "tunable"].contains(&variant.name.as_str());
        sample.max_rss = if dear { 400 * MIB } else { 300 * MIB };
    };
    let change: Fill = |variant, _, sample| {
        sample.max_rss = if variant.name == "tunable" {
            400 * MIB
        } else {
            300 * MIB
        };
    };
    let got = tuned(25.0, both);
    assert_eq!(
        (got.advice, got.answer),
        (Advice::DoNothing, Answer::DoNothing),
        "{}",
        got.reason
    );
    for part in ["1.3", "100 MiB (33 %) more memory", "--allow-growth"] {
        assert!(got.reason.contains(part), "{part}: {}", got.reason);
    }
    assert!(got.permanent.is_empty(), "{:?}", got.permanent);
    assert_eq!(got.allowed_growth_percent, Some(25.0));

    let got = tuned(50.0, both);
    assert_eq!(got.advice, Advice::Apply);
    assert!(
        got.reason.contains("100 MiB (33 %) more memory"),
        "{}",
        got.reason
    );
    assert_eq!(got.permanent.len(), 1);

    let got = tuned(25.0, change);
    assert_eq!(got.advice, Advice::Apply);
    assert!(got.reason.contains("for no more memory"), "{}", got.reason);
    assert!(got.permanent.is_empty(), "{:?}", got.permanent);
}

#[test]
fn a_gain_below_the_floor_is_not_advised() {
    let times: Times = &[
        ("none", &[2.0, 2.001]),
        ("plan", &[1.975, 1.976]),
        ("all", &[1.5, 1.501]),
        ("tunable", &[1.98, 1.981]),
    ];
    let mut experiment = MockExperiment::with_change(times, "tunable");
    let got = experiment.tune(600).findings;
    let plan = got.speedup.unwrap();
    assert!(plan.low > 1.0 && plan.median < 1.02, "{plan:?}");
    assert_eq!(got.advice, Advice::DoNothing, "{}", got.reason);
    assert!(
        got.reason.contains("no difference of 2 % or more"),
        "{}",
        got.reason
    );
    assert!(got.permanent.is_empty(), "{:?}", got.permanent);
}

#[test]
fn a_slower_plan_is_called_slower() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("plan", &[2.4, 2.41]),
        ("all", &[2.4, 2.41]),
    ];
    let got = MockExperiment::new(times).tune(600).findings;
    assert_eq!(
        (got.advice, got.verdict),
        (Advice::DoNothing, Some(Verdict::Slower))
    );
    assert!(got.permanent.is_empty());
}

#[test]
fn without_a_profile_the_changes_are_measured_all_the_same() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("all", &[1.5, 1.51]),
        ("tunable", &[1.5, 1.51]),
    ];
    let mut experiment = MockExperiment::new(times);
    (experiment.profile, experiment.candidates) = (None, vec![candidate("tunable")]);
    let got = experiment.tune(600).findings;
    assert_eq!((got.advice, got.speedup), (Advice::Apply, None));
    assert!(got.permanent[0].measured.is_some());
    assert!(
        got.notes.iter().any(|note| note.contains("no recorder")),
        "{:?}",
        got.notes
    );
}

/// A profile with file-backed memory only, for which no plan acts.
fn not_acted_on() -> Profile {
    let mut profile = profile();
    for part in &mut profile.sites {
        part.site.kind = SiteKind::Stack;
    }
    profile
}

#[test]
fn where_the_plan_does_nothing_and_everything_huge_gains_both_are_said() {
    let times: Times = &[("none", &[2.0, 2.01]), ("all", &[1.6, 1.61])];
    let mut experiment = MockExperiment::new(times);
    experiment.profile = Some(not_acted_on());
    let got = experiment.tune(600).findings;
    assert_eq!((got.advice, got.speedup), (Advice::DoNothing, None));
    for part in [
        "everything huge makes it 1.2",
        "but the plan found nothing to act on: ",
    ] {
        assert!(got.reason.contains(part), "{}", got.reason);
    }
    assert!(!got.reason.contains("it is not clear"), "{}", got.reason);
}

#[test]
fn where_the_plan_does_nothing_the_changes_are_what_is_measured() {
    for (seconds, gain) in [(2.0, false), (1.6, true)] {
        let none = [10.0, 10.05];
        let all = [8.0, 8.04];
        let change = [5.0 * seconds, 5.02 * seconds];
        let times: Times = &[("none", &none), ("all", &all), ("tunable", &change)];
        let mut experiment = MockExperiment::new(times);
        experiment.profile = Some(not_acted_on());
        experiment.candidates = vec![candidate("tunable")];
        // Too short for more than two variants.
        let got = experiment.tune(400).findings;
        let variants = &got.comparison.as_ref().unwrap().variants;
        assert_eq!(variants[1].name, "tunable");
        assert!(
            got.reason.contains("everything huge makes it 1.2"),
            "{}",
            got.reason
        );
        assert_eq!(got.advice == Advice::Apply, gain, "{}", got.reason);
        assert_eq!(got.permanent.iter().any(|p| p.measured.is_some()), gain);
        let own = if gain {
            "change below makes it 1.2"
        } else {
            "; tunable: 1.0"
        };
        assert!(got.reason.contains(own), "{}", got.reason);
    }
}

#[test]
fn the_cost_of_cold_memory_is_noted_where_it_is_known_and_paid() {
    let noted = |warm, complete, cold| {
        let mut experiment = MockExperiment::new(GAIN);
        (experiment.warm, experiment.costs.complete) = (warm, complete);
        experiment.costs.fault_2m_warm.median = 40_000.0;
        experiment.costs.fault_2m_cold.median = cold;
        let notes = experiment.tune(600).findings.notes;
        notes
            .into_iter()
            .find(|note| note.contains("after a pause"))
    };
    let note = noted(true, true, 4_000_000.0).unwrap();
    assert!(
        note.contains("up to 507 ms more (4 ms each instead of 40 us)"),
        "{note}"
    );
    assert_eq!(noted(true, true, 100_000.0), None);
    assert_eq!(noted(true, false, 4_000_000.0), None);
    assert_eq!(noted(false, true, 4_000_000.0), None);
}

#[test]
fn a_change_that_does_not_gain_is_not_printed() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("plan", &[1.5, 1.51]),
        ("all", &[1.5, 1.51]),
        ("useless", &[2.0, 2.01]),
    ];
    let mut experiment = MockExperiment::with_change(times, "useless");
    let change = experiment.candidates[0].change.clone();
    let got = experiment.tune(600).findings;
    assert_eq!(got.advice, Advice::Apply);
    assert!(got.permanent.is_empty(), "{:?}", got.permanent);
    // The table still has its name.
    let note = format!("variant useless: {change}");
    assert!(got.notes.contains(&note), "{:?}", got.notes);
}
