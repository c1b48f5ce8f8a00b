// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of pages beside the plan: program text, reserved pages.

use toll_act::permanent::{Candidate, Change, GLIBC};
use toll_linux::sys::Hugetlb;
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
