// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of pages beside the plan: program text, reserved pages, pages below 2 MiB.

use toll_act::permanent::{Candidate, Change, GLIBC};
use toll_linux::sys::{Hugetlb, Mode};
use toll_model::pages::PageKind;
use toll_observe::observation::TextUse;

use super::mock::{MIB, MockExperiment, Times, profile};
use crate::tune::budget::Step;
use crate::tune::findings::Advice;
use crate::tune::kinds::Machine;
use crate::tune::text;

/// An experiment with 8 MiB of hot text.
fn with_text(times: Times) -> MockExperiment {
    let mut experiment = MockExperiment::new(times);
    experiment.look.text = vec![TextUse {
        path: "/bin/x".to_owned(),
        touched: 8 * MIB,
        huge: 0,
        length: 16 * MIB,
    }];
    experiment.pages.text_reach = MIB / 4;
    experiment
}

#[test]
fn text_alone_is_applied_where_nothing_else_gains() {
    let mut experiment = with_text(&[
        ("none", &[2.0, 2.01]),
        ("all", &[2.0, 2.005]),
        ("text", &[1.8, 1.81]),
    ]);
    let results = experiment.tune(600);
    let got = &results.findings;
    assert_eq!(got.advice, Advice::Apply, "{got:?}");
    assert_eq!(got.best.as_deref(), Some("text"));
    assert!(
        got.reason
            .starts_with("program text in huge pages makes it")
    );
    assert!(!experiment.steps.contains(&Step::Profile), "it cannot help");
    let comparison = got.comparison.as_ref().unwrap();
    let text = comparison.variant("text").unwrap();
    assert_eq!(text.pages, [PageKind::Text]);
    let kind = got.kinds.iter().find(|kind| kind.pages == PageKind::Text);
    assert!(kind.unwrap().tried);
}

#[test]
fn text_beside_a_plan_is_compared_with_the_plan() {
    let mut experiment = with_text(&[
        ("none", &[2.0, 2.01]),
        ("plan", &[1.5, 1.51]),
        ("all", &[1.5, 1.51]),
        ("text", &[1.9, 1.91]),
        ("plan+text", &[1.3, 1.31]),
    ]);
    let results = experiment.tune(600);
    let mut got = results.findings;
    assert_eq!(got.best.as_deref(), Some("plan+text"));
    let both = got
        .comparison
        .as_ref()
        .unwrap()
        .variant("plan+text")
        .unwrap();
    assert_eq!(both.pages, [PageKind::Anonymous, PageKind::Text]);
    got.directory = Some("out".into());
    let text = text::render(&got);
    assert!(text.contains("run --plan out/plan-text.toml"), "{text}");
    assert!(
        text.contains("pages      program text, 2 MiB: tried"),
        "{text}"
    );
}

#[test]
fn text_without_a_gain_ends_as_before() {
    let mut experiment = with_text(&[
        ("none", &[2.0, 2.01]),
        ("all", &[2.0, 2.005]),
        ("text", &[2.0, 2.006]),
    ]);
    let results = experiment.tune(600);
    let got = &results.findings;
    assert_eq!(
        (got.advice, got.step),
        (Advice::DoNothing, Step::UpperBound)
    );
    assert_eq!(got.best, None);
    assert!(got.reason.contains("even with everything huge"), "{got:?}");
}

#[test]
fn text_within_the_reach_is_not_tried() {
    let mut experiment = with_text(super::mock::GAIN);
    experiment.pages.text_reach = 16 * MIB;
    let results = experiment.tune(600);
    let kinds = results.findings.kinds;
    let text = kinds.iter().find(|kind| kind.pages == PageKind::Text);
    let text = text.unwrap();
    assert!(!text.tried && text.reason.contains("8 MiB"), "{text:?}");
}

#[test]
fn reserved_pages_are_tried_where_the_pool_has_them() {
    let tunable = Candidate {
        name: GLIBC,
        change: "glibc".to_owned(),
        how: String::new(),
        variant: Some(Change {
            env: vec![("GLIBC_TUNABLES".into(), "a=b:glibc.malloc.hugetlb=1".into())],
            ..Change::default()
        }),
    };
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("plan", &[1.5, 1.51]),
        ("all", &[1.5, 1.51]),
        (GLIBC, &[1.5, 1.51]),
        ("glibc-hugetlb-2m", &[1.4, 1.41]),
    ];
    let pool = Hugetlb {
        page: 2 * MIB,
        total: 128,
        free: 128,
        overcommit: 0,
    };
    for (free, tried) in [(128, true), (127, false)] {
        let mut experiment = MockExperiment::new(times);
        experiment.candidates = vec![tunable.clone()];
        experiment.profile = Some(profile());
        experiment.pages = Machine {
            pools: vec![Hugetlb { free, ..pool }],
            ..Machine::default()
        };
        let found = experiment.tune(3600).findings;
        let comparison = found.comparison.as_ref().unwrap();
        let variant = comparison.variant("glibc-hugetlb-2m");
        assert_eq!(variant.is_some(), tried);
        let kind = found
            .kinds
            .iter()
            .find(|kind| kind.pages == PageKind::Hugetlb2m);
        assert_eq!(kind.unwrap().tried, tried);
    }
}

/// An experiment that may try pages of 64 KiB, which the machine has not enabled.
fn with_smaller(times: Times, mode: Mode) -> MockExperiment {
    let mut experiment = MockExperiment::new(times);
    experiment.pages.sizes = vec![(64 << 10, mode)];
    experiment.pages.may_try = Some(64 << 10);
    experiment
}

#[test]
fn smaller_pages_are_advised_where_only_they_gain() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("all", &[2.0, 2.005]),
        ("mthp-64k", &[1.8, 1.81]),
    ];
    let mut experiment = with_smaller(times, Mode::Never);
    let results = experiment.tune(600);
    let found = &results.findings;
    assert_eq!(found.advice, Advice::Apply, "{found:?}");
    assert!(!experiment.steps.contains(&Step::Profile), "it cannot help");
    let change = found.permanent.first().unwrap();
    assert!(change.measured.is_some() && change.how.contains("hugepages-64kB/enabled"));
    let kind = found.kinds.iter().find(|kind| kind.pages == PageKind::Mthp);
    assert_eq!(kind.unwrap().reason, "pages of 64 KiB");
    assert!(kind.unwrap().tried);
}

#[test]
fn smaller_pages_are_one_change_beside_a_plan() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("plan", &[1.5, 1.51]),
        ("all", &[1.5, 1.51]),
        ("mthp-64k", &[1.9, 1.91]),
    ];
    let found = with_smaller(times, Mode::Madvise).tune(3600).findings;
    assert_eq!(found.best.as_deref(), Some("plan"));
    let comparison = found.comparison.as_ref().unwrap();
    assert!(comparison.variant("mthp-64k").unwrap().gains());
    let kind = found.kinds.iter().find(|kind| kind.pages == PageKind::Mthp);
    assert!(
        kind.unwrap().reason.contains("too short for 2 MiB"),
        "{kind:?}"
    );
}

#[test]
fn smaller_pages_that_cannot_gain_end_with_the_upper_bound() {
    let times: Times = &[
        ("none", &[2.0, 2.01]),
        ("all", &[2.0, 2.005]),
        ("mthp-64k", &[2.0, 2.005]),
    ];
    let found = with_smaller(times, Mode::Never).tune(600).findings;
    assert_eq!(found.advice, Advice::DoNothing);
    assert!(found.comparison.is_none());
    // Memory has them already.
    let used = with_smaller(times, Mode::Always).tune(600).findings;
    assert!(used.upper_bound.unwrap().variant("mthp-64k").is_none());
}
