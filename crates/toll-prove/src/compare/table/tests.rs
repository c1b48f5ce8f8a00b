// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_model::plan::Estimate;

use super::*;
use crate::compare::mock::{Mock, rules};
use crate::compare::{Variant, compare};

#[test]
fn the_text_names_variant_ratio_interval_resource_and_pairs() {
    let mut mock = Mock::new(&[("none", &[3.0, 3.01]), ("plan", &[2.0, 2.01])]);
    let variants = [Variant::none(), Variant::plan("p")];
    let predicted = Estimate {
        median: 1.4,
        low: 1.3,
        high: 1.6,
    };
    let got = compare(
        &mut mock,
        "x",
        &variants,
        &rules(Some(6), 999.0),
        Some(predicted),
    )
    .unwrap();
    let text = render(&got, More::Pairs);
    for part in [
        "plan is faster: 1.499x",
        "elapsed time",
        "95 % interval",
        "6 pairs",
        "predicted 1.400x",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn memory_that_was_warmed_is_said() {
    let mut mock = Mock::new(&[("none", &[3.0]), ("all", &[2.0])]);
    let variants = [Variant::none(), Variant::all()];
    let mut got = compare(&mut mock, "x", &variants, &rules(Some(2), 999.0), None).unwrap();
    assert!(!render(&got, More::Pairs).contains("--cold"));
    got.warmed_bytes = 640 << 20;
    let text = render(&got, More::Pairs);
    assert!(
        text.contains("before each run 640 MiB were touched"),
        "{text}"
    );
}

#[test]
fn a_difference_below_the_floor_does_not_matter() {
    // The preload library's start costs 0.7 %, which these runs resolve.
    let mut mock = Mock::new(&[("none", &[3.0, 3.001]), ("plan", &[3.021, 3.022])]);
    let variants = [Variant::none(), Variant::plan("p")];
    let got = compare(&mut mock, "x", &variants, &rules(Some(8), 999.0), None).unwrap();
    assert!(got.main().unwrap().high < 1.0, "{:?}", got.main());
    let text = render(&got, More::Pairs);
    assert!(
        text.contains("no difference of 2 % or more: plan"),
        "{text}"
    );
    assert!(!text.to_lowercase().contains("slower"), "{text}");
}

#[test]
fn what_cannot_be_told_is_not_called_a_gain() {
    let mut mock = Mock::new(&[("none", &[3.0, 3.4, 2.6, 3.1]), ("all", &[3.1, 2.5, 3.3])]);
    let variants = [Variant::none(), Variant::all()];
    let got = compare(&mut mock, "x", &variants, &rules(Some(6), 999.0), None).unwrap();
    let text = render(&got, More::Pairs);
    assert!(
        text.contains("cannot tell") && text.contains("would settle it"),
        "{text}"
    );
    assert!(!text.contains("is faster"), "{text}");
}
