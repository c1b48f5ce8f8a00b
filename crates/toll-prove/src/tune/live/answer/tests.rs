// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn interval(median: f64, half: f64) -> Interval {
    Interval {
        median,
        low: median - half,
        high: median + half,
    }
}

#[test]
fn only_a_gain_that_is_not_there_already_is_advised() {
    let faster = interval(1.2, 0.05);
    for (measured, was_huge, expected) in [
        (Some(faster), false, (Advice::Apply, Answer::Apply)),
        (Some(faster), true, (Advice::DoNothing, Answer::DoNothing)),
        (
            Some(interval(0.9, 0.05)),
            false,
            (Advice::DoNothing, Answer::DoNothing),
        ),
        (
            Some(interval(1.0, 0.01)),
            false,
            (Advice::DoNothing, Answer::DoNothing),
        ),
        (
            Some(interval(1.1, 0.2)),
            false,
            (Advice::DoNothing, Answer::Undecided),
        ),
        (None, false, (Advice::DoNothing, Answer::Undecided)),
    ] {
        assert_eq!(
            answer(measured.as_ref(), was_huge),
            expected,
            "{measured:?}"
        );
    }
}

#[test]
fn a_larger_gain_from_the_pages_before_is_explained() {
    let interleaved = interval(1.14, 0.03);
    for (before, explained) in [
        (None, false),
        (Some(interval(1.15, 0.03)), false),
        (Some(interval(1.05, 0.01)), false),
        (Some(interval(1.57, 0.02)), true),
    ] {
        let note = more_from_before(before, Some(interleaved));
        assert_eq!(note.is_some(), explained, "{before:?}");
        assert_eq!(more_from_before(before, None), None);
    }
}
