// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_model::stats::Interval;

use super::*;
use crate::tune::findings::Results;

#[test]
fn the_text_says_what_to_do_and_where_the_report_lies() {
    let mut found = Results::new("x", 60.0).findings;
    (found.advice, found.answer) = (Advice::Apply, Answer::Apply);
    found.reason = "it is faster".to_owned();
    found.planned_bytes = Some(2 << 20);
    found.speedup = Some(Interval {
        median: 1.3,
        low: 1.2,
        high: 1.4,
    });
    found.directory = Some("out".into());
    found.report = Some("out/report.html".into());
    found.memory = vec!["main (x.c:4)".to_owned()];
    let measured = Some(Interval {
        median: 1.3,
        low: 1.2,
        high: 1.4,
    });
    let change = |measured| Permanent {
        change: "set A".to_owned(),
        how: "export A=1".to_owned(),
        measured,
        state: String::new(),
    };
    found.permanent = vec![change(measured), change(None)];
    let text = render(&found);
    for part in [
        "Apply it: it is faster.",
        "main (x.c:4)",
        "set A (measured 1.300 (1.200 to 1.400) times as fast)",
        "set A (not measured)",
        "tollfree run --plan out/plan.toml",
        "out/report.html",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn an_interrupted_answer_says_so_once() {
    let mut found = Results::new("x", 60.0).findings;
    found.complete = false;
    found.reason =
        "interrupted in the step \"profile\"; what was measured so far is kept".to_owned();
    let text = render(&found);
    assert!(
        text.starts_with("Interrupted: in the step \"profile\"; what was"),
        "{text}"
    );
}

#[test]
fn nothing_to_do_shows_nothing_to_paste() {
    let mut found = Results::new("x", 60.0).findings;
    found.reason = "no gain".to_owned();
    found.answer = Answer::DoNothing;
    let text = render(&found);
    assert_eq!(text, "Do nothing: no gain.\n");
}
