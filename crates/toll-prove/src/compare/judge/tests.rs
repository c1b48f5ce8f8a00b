// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_act::permanent::Change;

use super::*;
use crate::compare::Invocation;
use crate::compare::mock::{Mock, rules};

fn three() -> Vec<Variant> {
    vec![Variant::none(), Variant::plan("p.toml"), Variant::all()]
}

#[test]
fn a_gain_is_called_faster() {
    let mut mock = Mock::new(&[
        ("none", &[3.0, 3.03, 2.97]),
        ("plan", &[2.0, 2.01, 1.99]),
        ("all", &[1.9, 1.91, 1.89]),
    ]);
    let got = compare(&mut mock, "x", &three(), &rules(None, 9999.0), None).unwrap();
    assert_eq!(got.verdict, Verdict::Faster);
    let speedup = got.speedup.unwrap();
    assert!(
        (speedup.median - 1.5).abs() < 0.02 && speedup.low > 1.4,
        "{speedup:?}"
    );
    assert!(got.speedup_all.unwrap().median > speedup.median);
    assert_eq!((got.pairs, got.pairs_to_settle), (8, None));
    assert_eq!(got.variants[0].speedup, None);
}

#[test]
fn noise_is_called_cannot_tell_and_says_what_would_settle_it() {
    let mut mock = Mock::new(&[
        ("none", &[3.0, 3.3, 2.7, 3.1, 2.9]),
        ("plan", &[2.9, 3.2, 2.8, 3.2, 2.7]),
        ("all", &[3.0]),
    ]);
    let got = compare(&mut mock, "x", &three(), &rules(Some(6), 9999.0), None).unwrap();
    assert_eq!(got.verdict, Verdict::CannotTell);
    assert!(got.pairs_to_settle.unwrap() > 6);
    assert!(got.smallest_visible_effect.unwrap() > 0.02);
}

#[test]
fn a_gain_in_cpu_time_alone_is_noted() {
    let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[3.0]), ("all", &[3.0])]);
    mock.fill = |variant, _, sample| {
        sample.user = if variant.name == "none" { 2.0 } else { 1.9 };
    };
    let got = compare(&mut mock, "x", &three(), &rules(None, 9999.0), None).unwrap();
    assert_eq!(got.verdict, Verdict::NoDifference);
    assert!(
        got.notes.iter().any(|note| note.contains("CPU time")),
        "{:?}",
        got.notes
    );
}

#[test]
fn too_little_time_gives_no_interval_and_says_so() {
    let mut mock = Mock::new(&[("none", &[30.0]), ("plan", &[30.0]), ("all", &[30.0])]);
    let got = compare(&mut mock, "x", &three(), &rules(None, 100.0), None).unwrap();
    assert_eq!(
        (got.speedup, got.verdict, got.pairs),
        (None, Verdict::CannotTell, 1)
    );
    assert!(got.notes.iter().any(|note| note.contains("--within")));
}

#[test]
fn bloat_is_against_the_first_variant() {
    let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[3.0]), ("all", &[3.0])]);
    mock.fill = |variant, _, sample| {
        sample.max_rss = if variant.name == "all" { 300 } else { 100 };
    };
    let got = compare(&mut mock, "x", &three(), &rules(Some(2), 9999.0), None).unwrap();
    assert_eq!(got.variant("all").unwrap().bloat, Some(200));
    assert_eq!(got.variant("none").unwrap().bloat, Some(0));
}

#[test]
fn memory_above_the_limit_makes_a_gain_unaffordable() {
    let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[2.0]), ("all", &[2.0])]);
    mock.fill = |variant, _, sample| {
        sample.max_rss = if variant.name == "none" { 400 } else { 500 };
    };
    let mut got = compare(&mut mock, "x", &three(), &rules(Some(8), 9999.0), None).unwrap();
    let affordable = |got: &Comparison| -> Vec<Option<bool>> {
        got.variants
            .iter()
            .map(|variant| variant.affordable)
            .collect()
    };
    assert_eq!(affordable(&got), [None; 3]);
    got.allow_growth(25.0);
    assert_eq!(affordable(&got), [None, Some(true), None]);
    assert!(got.variant("plan").unwrap().gains());
    got.allow_growth(24.9);
    assert_eq!(affordable(&got), [None, Some(false), None]);
    assert!(!got.variant("plan").unwrap().gains());
}

/// Times of a variant with a gain that has an interval just above 1.
fn barely(variant: usize) -> Vec<f64> {
    let noise = [
        0.04, -0.035, 0.02, -0.03, 0.035, -0.01, 0.0, -0.02, 0.03, -0.03,
    ];
    let shifted = noise.iter().cycle().skip(variant).take(10);
    shifted.map(|noise| 3.0 / (1.0262 + noise)).collect()
}

fn change(name: &str) -> Variant {
    Variant::change(name, Change::default())
}

#[test]
fn several_candidates_must_each_prove_more() {
    let (plan, one, two) = (barely(0), barely(1), barely(2));
    let times: [(&str, &[f64]); 4] = [
        ("none", &[3.0]),
        ("plan", &plan),
        ("one", &one),
        ("two", &two),
    ];
    let proven = |variants: &[Variant]| -> Vec<Option<bool>> {
        // The first round is not counted.
        let got = compare(
            &mut Mock::new(&times),
            "x",
            variants,
            &rules(Some(10), 9999.0),
            None,
        );
        let got = got.unwrap();
        assert!(
            got.variants[1].speedup.unwrap().is_gain(),
            "{:?}",
            got.variants[1].speedup
        );
        got.variants.iter().map(|variant| variant.proven).collect()
    };
    let plan = || Variant::plan("p");
    assert_eq!(proven(&[Variant::none(), plan()]), [None, Some(true)]);
    let several = proven(&[Variant::none(), plan(), change("one"), change("two")]);
    assert_eq!(several, [None, Some(false), Some(false), Some(false)]);
}

#[test]
fn what_is_proved_beyond_doubt_leaves_the_rest_for_the_others() {
    let barely = barely(0);
    let times: [(&str, &[f64]); 4] = [
        ("none", &[3.0]),
        ("plan", &[2.0]),
        ("one", &barely),
        ("all", &[2.0]),
    ];
    let variants = [
        Variant::none(),
        Variant::plan("p"),
        change("one"),
        Variant::all(),
    ];
    let got = compare(
        &mut Mock::new(&times),
        "x",
        &variants,
        &rules(Some(10), 9999.0),
        None,
    );
    let proven: Vec<_> = got
        .unwrap()
        .variants
        .iter()
        .map(|variant| variant.proven)
        .collect();
    // Everything huge cannot be applied as it is: it is not judged.
    assert_eq!(proven, [None, Some(true), Some(true), None]);
}

#[test]
fn huge_memory_is_that_of_the_sampled_runs() {
    let mut mock = Mock::new(&[("none", &[3.0]), ("plan", &[3.0]), ("all", &[3.0])]);
    mock.fill = |variant, run, sample| {
        if run == 0 && variant.name != "plan" {
            (sample.huge_peak, sample.huge_samples) = (400, 3);
        }
    };
    let got = compare(&mut mock, "x", &three(), &rules(Some(3), 9999.0), None).unwrap();
    let median = |name| got.variant(name).unwrap().median.clone().unwrap();
    assert_eq!(
        (median("all").huge_peak, median("all").huge_samples),
        (400.0, 3)
    );
    assert_eq!(
        (median("plan").huge_peak, median("plan").huge_samples),
        (0.0, 0)
    );
}

#[test]
fn a_comparison_survives_its_own_json() {
    let mut mock = Mock::new(&[("none", &[3.0, 3.1]), ("plan", &[2.0]), ("all", &[2.0])]);
    let got = compare(&mut mock, "x", &three(), &rules(Some(4), 9999.0), None).unwrap();
    let text = serde_json::to_string(&got).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), got);
}

#[test]
fn the_speed_up_of_two_commands_is_that_of_the_second() {
    let mut mock = Mock::new(&[("a", &[3.0, 3.03, 2.97]), ("b", &[2.0, 2.01, 1.99])]);
    let command = |line: &str| Invocation::shell(line.as_ref());
    let env = [("X".into(), "1".into())];
    let variants = Variant::two(command("./old"), command("./new").with_env(&env));
    let got = compare(&mut mock, "x", &variants, &rules(None, 9999.0), None).unwrap();
    assert_eq!(got.verdict, Verdict::Faster);
    assert!((got.speedup.unwrap().median - 1.5).abs() < 0.02);
    assert_eq!((got.speedup_all, got.predicted_speedup), (None, None));
    let [a, b] = got.variants.as_slice() else {
        panic!("{:?}", got.variants)
    };
    assert_eq!((a.proven, b.proven), (None, Some(true)));
    assert_eq!(b.meaning, "X=1 ./new");
    let command = b.command.as_ref().unwrap();
    assert_eq!(
        (command.line.as_str(), command.env["X"].as_str()),
        ("./new", "1")
    );
}

#[test]
fn commands_that_print_different_things_are_no_matter_of_a_plan() {
    let mut mock = Mock::new(&[("a", &[3.0]), ("b", &[2.0])]);
    mock.fill = |variant, _, sample| {
        sample.output = Some([u64::from(variant.name == "b"), 0]);
    };
    let command = || Invocation::program(&["x".into()]);
    let variants = Variant::two(command(), command());
    let got = compare(&mut mock, "x", &variants, &rules(Some(3), 9999.0), None).unwrap();
    let error = got.check_output(false).unwrap_err().to_string();
    assert!(error.contains("DIFFERS in variant b"), "{error}");
    assert!(!error.contains("plan"), "{error}");
    assert!(got.check_output(true).is_ok());
}
