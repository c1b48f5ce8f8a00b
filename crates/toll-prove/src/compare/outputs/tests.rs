// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::compare::schedule::Stopped;

fn outputs_of(outputs: &[&str]) -> Vec<([u64; 2], Option<String>)> {
    let mut checker = OutputChecker::new().unwrap();
    let mut add = |text: &&str| {
        fs::write(checker.directory().join("stdout"), text).unwrap();
        fs::write(checker.directory().join("stderr"), "").unwrap();
        checker.take().unwrap()
    };
    outputs.iter().map(&mut add).collect()
}

#[test]
fn the_first_difference_is_named() {
    let seen = outputs_of(&["one\ntwo\n", "one\ntwo\n", "one\ntoo\n", "one\n"]);
    assert_eq!(seen[0].0, seen[1].0);
    assert_eq!(seen[1].1, None);
    let text = seen[2].1.as_deref().unwrap();
    assert!(
        text.starts_with("stdout differs at byte 5 (line 2): `wo\\n` in"),
        "{text}"
    );
    assert!(seen[3].1.as_deref().unwrap().contains("the end in another"));
}

fn runs(outputs: &[&[u64]]) -> Runs {
    let variant = |prints: &&[u64]| -> Vec<Sample> {
        let sample = |p: &u64| Sample {
            output: Some([*p, 0]),
            ..Sample::default()
        };
        prints.iter().map(sample).collect()
    };
    Runs {
        variants: outputs.iter().map(variant).collect(),
        stopped: Stopped::Pairs,
        resource: crate::compare::Resource::Elapsed,
    }
}

#[test]
fn a_varying_program_is_told_from_a_changed_result() {
    let variants = [Variant::none(), Variant::all()];
    assert_eq!(
        check(&variants, &runs(&[&[1, 1], &[1, 1]])),
        OutputCheck::Same
    );
    let varies = check(&variants, &runs(&[&[1, 2], &[1, 1]]));
    assert!(matches!(varies, OutputCheck::Varies { variant, .. } if variant == "none"));
    let differs = check(&variants, &runs(&[&[1, 1], &[2, 2]]));
    assert!(
        matches!(differs, OutputCheck::DiffersBetweenVariants { variant, .. } if variant == "all")
    );
    let too_few = check(&variants, &runs(&[&[1, 1], &[2]]));
    assert!(matches!(too_few, OutputCheck::Varies { .. }));
}

#[test]
fn a_server_is_not_checked() {
    let mut runs = runs(&[&[1], &[1]]);
    runs.variants[0][0].output = None;
    let got = check(&[Variant::none(), Variant::all()], &runs);
    assert!(matches!(got, OutputCheck::NotChecked { .. }));
}
