// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;

use super::interval::verdict_quantile;
use super::order::pseudo_median;
use super::students_t::{expanded_tail, student_t_upper};
use super::*;
use crate::random::Random;

fn interval(low: f64, median: f64, high: f64) -> Interval {
    Interval { median, low, high }
}

#[test]
fn median_of_odd_and_even() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(median(&[]), None);
}

#[test]
fn students_t_is_the_tables() {
    for (freedom, expected) in [(1.0, 12.706), (4.0, 2.776), (9.0, 2.262), (30.0, 2.042)] {
        let t = student_t_upper(0.025, freedom);
        assert!((t - expected).abs() < 0.0005, "{freedom}: {t}");
    }
}

/// One and two degrees of freedom have closed forms.
#[test]
fn students_t_is_exact_where_it_can_be_computed() {
    for p in [0.4, 0.1, 0.025, 0.005, 1e-3, 1e-4, 1e-5] {
        let one = 1.0 / (std::f64::consts::PI * p).tan();
        let two = (1.0 - 2.0 * p) / (2.0 * p * (1.0 - p)).sqrt();
        for (freedom, exact) in [(1.0, one), (2.0, two)] {
            let t = student_t_upper(p, freedom);
            assert!(
                (t / exact - 1.0).abs() < 1e-9,
                "{freedom}, {p}: {t} for {exact}"
            );
        }
    }
}

#[test]
fn the_cut_off_share_is_that_of_a_t_interval() {
    // Phi(-2.7764451 * sqrt(5 / 4)) = erfc(2.7764451 * sqrt(5 / 8)) / 2.
    let share = expanded_tail(0.05, 5);
    assert!((share / 9.541_005_7e-4 - 1.0).abs() < 1e-6, "{share}");
    // With two runs it is outside the range of the resamples.
    assert!(expanded_tail(0.05, 2) < 1e-60);
}

#[test]
fn runs_without_noise_give_an_exact_ratio() {
    let got = ratio_of_rounds(&[3.0; 6], &[2.0; 6], 0.95).unwrap();
    for end in [got.low, got.median, got.high] {
        assert!((end - 1.5).abs() < 1e-12, "{got:?}");
    }
    assert_eq!(got.verdict(), Verdict::Faster);
}

#[test]
fn one_run_each_tells_nothing() {
    let got = ratio_of_rounds(&[3.0], &[2.0], 0.95).unwrap();
    assert_eq!(got.verdict(), Verdict::CannotTell);
}

#[test]
fn a_drift_that_both_share_does_not_widen_the_interval() {
    let none: Vec<f64> = (0..10).map(|i| 10.0 * 1.05f64.powi(i)).collect();
    let plan: Vec<f64> = none.iter().map(|t| t / 1.1).collect();
    let paired = ratio_of_rounds(&none, &plan, 0.95).unwrap();
    let apart = ratio_of_medians(&none, &plan, 0.95).unwrap();
    assert!(paired.width() < 0.001, "{paired:?}");
    assert!(apart.width() > 0.1, "{apart:?}");
}

#[test]
fn verdicts() {
    assert_eq!(interval(1.01, 1.1, 1.2).verdict(), Verdict::Faster);
    assert_eq!(interval(0.8, 0.9, 0.99).verdict(), Verdict::Slower);
    assert_eq!(interval(0.9, 1.05, 1.2).verdict(), Verdict::CannotTell);
    // A difference below the threshold is neither faster nor slower.
    for (low, median, high) in [
        (0.99, 1.0, 1.01),
        (1.001, 1.007, 1.013),
        (0.985, 0.993, 0.998),
    ] {
        let got = interval(low, median, high).verdict();
        assert_eq!(got, Verdict::NoDifference, "{low} to {high}");
    }
    // Nor is one that is significant, but may lie on either side of the threshold.
    assert_eq!(interval(1.005, 1.015, 1.026).verdict(), Verdict::CannotTell);
    assert_eq!(interval(0.974, 0.985, 0.995).verdict(), Verdict::CannotTell);
    assert_eq!(interval(1.001, 1.02, 1.04).verdict(), Verdict::Faster);
    assert!(interval(1.001, 1.02, 1.04).is_gain() && !interval(1.005, 1.015, 1.026).is_gain());
    assert!(interval(0.985, 1.0, 1.015).inside(0.02));
    assert!(!interval(0.975, 1.0, 1.015).inside(0.02));
    assert!(interval(1.08, 1.1, 1.12).resolves_effect());
    assert!(!interval(1.01, 1.1, 1.2).resolves_effect());
}

#[test]
fn four_times_the_pairs_halve_the_interval() {
    // t and its quantile of 80 % are 1.972 and 0.843 for many pairs.
    let wide = |half: f64| interval(1.1 - half, 1.1, 1.1 + half).pairs_to_settle(400);
    let (few, many) = (wide(0.3), wide(0.6));
    assert!(
        (f64::from(few) / (400.0 * (0.3 * 1.4277_f64 / 0.1).powi(2)) - 1.0).abs() < 0.01,
        "{few}"
    );
    assert!(
        (f64::from(many) / f64::from(few) - 4.0).abs() < 0.02,
        "{few}, {many}"
    );
    assert_eq!(interval(1.05, 1.06, 1.07).pairs_to_settle(8), 8);
    // At the threshold no number of pairs gives a verdict.
    assert_eq!(interval(1.0, 1.02, 1.04).pairs_to_settle(8), MOST_PAIRS);
    assert!(interval(0.98, 1.0, 1.02).pairs_to_settle(8) > 8);
    assert!(interval(0.98, 1.0, 1.02).pairs_to_settle(8) < 40);
    assert_eq!(
        interval(0.0, 1.1, f64::INFINITY).pairs_to_settle(1),
        MOST_PAIRS
    );
}

/// Rounds with noise of a standard deviation of `noise` in the log ratio.
fn rounds(random: &mut Random, pairs: u32, noise: f64, ratio: f64) -> Interval {
    let none: Vec<f64> = (0..pairs)
        .map(|_| ratio * (noise * random.normals().0).exp())
        .collect();
    ratio_of_rounds(&none, &vec![1.0; none.len()], 0.95).unwrap()
}

#[test]
fn a_visible_effect_is_seen_four_times_in_five() {
    let mut random = Random::new(3);
    for pairs in [8, 14] {
        let trials = 200;
        let seen = (0..trials).filter(|_| {
            let before = rounds(&mut random, pairs, 0.03, 1.0);
            let effect = before.smallest_visible_effect(pairs);
            rounds(&mut random, pairs, 0.03, 1.0 + effect).low > 1.0
        });
        let share = seen.count() as f64 / f64::from(trials);
        assert!((0.72..0.9).contains(&share), "{pairs} pairs: {share}");
    }
}

#[test]
fn the_pairs_that_settle_it_do_so_four_times_in_five() {
    let mut random = Random::new(4);
    for (ratio, noise, expected) in [
        (1.06, 0.06, Verdict::Faster),
        (0.95, 0.05, Verdict::Slower),
        (1.0, 0.03, Verdict::NoDifference),
    ] {
        let half = verdict_quantile(8) * noise / 8.0_f64.sqrt();
        let pilot = interval(ratio - half, ratio, ratio + half);
        let pairs = pilot.pairs_to_settle(8);
        assert!((9..40).contains(&pairs), "{ratio}: {pairs}");
        let trials = 120;
        let settled =
            (0..trials).filter(|_| rounds(&mut random, pairs, noise, ratio).verdict() == expected);
        let share = settled.count() as f64 / f64::from(trials);
        assert!(
            (0.7..0.95).contains(&share),
            "{ratio}, {pairs} pairs: {share}"
        );
    }
}

#[test]
fn spearman_knows_order_and_ties() {
    assert_eq!(spearman(&[1.0, 2.0, 3.0], &[10.0, 20.0, 900.0]), Some(1.0));
    assert_eq!(spearman(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
    let tied = spearman(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    assert!((tied - 0.948_683_298).abs() < 1e-6, "{tied}");
    assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
    assert_eq!(spearman(&[1.0], &[1.0]), None);
}

/// Simulated runs: a common drift, noise with a long right tail, a true ratio.
fn experiment(random: &mut Random, runs: usize, ratio: f64) -> (Vec<f64>, Vec<f64>) {
    let mut drift = 0.0;
    let noise = |drift: f64, random: &mut Random| {
        let (a, b) = random.normals();
        (drift + 0.01 * a + 0.01 * b.max(0.0).powi(2)).exp()
    };
    (0..runs)
        .map(|_| {
            drift += 0.01 * random.normals().0;
            (ratio * noise(drift, random), noise(drift, random))
        })
        .unzip()
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let mut random = Random::new(1);
    for runs in [2, 3, 4, 6, 12] {
        let trials = 400;
        let held = (0..trials)
            .filter(|_| {
                let (none, plan) = experiment(&mut random, runs, 1.07);
                let got = ratio_of_rounds(&none, &plan, 0.95).unwrap();
                (got.low..=got.high).contains(&1.07)
            })
            .count();
        let share = held as f64 / f64::from(trials);
        assert!(share >= 0.93, "{runs} runs: {share}");
    }
}

#[test]
fn the_pseudo_median_is_that_of_all_means() {
    let of = |values: &[f64]| pseudo_median(values, &mut Vec::new());
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[3.0]), Some(3.0));
    // 1, 1.5, 2, 5.5, 6, 10; and 0, 0.5, 1, 1, 1.5, 2, 50, 50.5, 51, 100.
    assert_eq!(of(&[1.0, 2.0, 10.0]), Some((2.0 + 5.5) / 2.0));
    assert_eq!(of(&[0.0, 1.0, 2.0, 100.0]), Some((1.5 + 2.0) / 2.0));
    // One outlier among many has little effect.
    let mut many = vec![1.0; 99];
    many.push(1e9);
    assert_eq!(of(&many), Some(1.0));
}

#[test]
fn rounds_say_more_than_medians() {
    let mut random = Random::new(2);
    let mut errors = [0.0; 2];
    for _ in 0..400 {
        let (none, plan) = experiment(&mut random, 9, 1.07);
        let rounds = ratio_of_rounds(&none, &plan, 0.95).unwrap().median;
        let medians = median(&none).unwrap() / median(&plan).unwrap();
        for (sum, got) in errors.iter_mut().zip([rounds, medians]) {
            *sum += (got / 1.07).ln().powi(2);
        }
    }
    assert!(errors[0] < 0.85 * errors[1], "{errors:?}");
}

fn times() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(0.001..1e6, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_interval_holds_its_median_and_is_repeatable(a in times(), b in times()) {
        let rounds = a.len().min(b.len());
        let both = || {
            let apart = ratio_of_medians(&a, &b, 0.95).unwrap();
            [apart, ratio_of_rounds(&a[..rounds], &b[..rounds], 0.95).unwrap()]
        };
        for got in both() {
            prop_assert!(got.low <= got.median && got.median <= got.high);
            prop_assert!(got.low >= 0.0);
        }
        prop_assert_eq!(both(), both());
    }

    #[test]
    fn the_unit_of_time_does_not_matter(
        pairs in proptest::collection::vec((0.5..2.0, 0.5..2.0), 2..9), unit in 0.001..1000.0f64,
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let scale = |v: &[f64]| v.iter().map(|x| x * unit).collect::<Vec<_>>();
        for ratio in [ratio_of_rounds, ratio_of_medians] {
            let plain = ratio(&a, &b, 0.95).unwrap();
            let scaled = ratio(&scale(&a), &scale(&b), 0.95).unwrap();
            prop_assert!((plain.low / scaled.low - 1.0).abs() < 1e-6);
            prop_assert!((plain.high / scaled.high - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn more_confidence_is_never_narrower(a in times(), b in times()) {
        let rounds = a.len().min(b.len());
        for ratio in [ratio_of_rounds, ratio_of_medians] {
            let at = |confidence| ratio(&a[..rounds], &b[..rounds], confidence).unwrap();
            let (usual, strict) = (at(0.8), at(0.99));
            prop_assert!(strict.low <= usual.low && usual.high <= strict.high);
        }
    }

    #[test]
    fn impossible_times_have_no_ratio(bad in prop_oneof![Just(0.0), Just(-1.0), Just(f64::NAN), Just(f64::INFINITY)]) {
        for ratio in [ratio_of_rounds, ratio_of_medians] {
            prop_assert_eq!(ratio(&[1.0, bad], &[1.0, 1.0], 0.95), None);
            prop_assert_eq!(ratio(&[], &[], 0.95), None);
        }
        prop_assert_eq!(ratio_of_rounds(&[1.0], &[1.0, 1.0], 0.95), None);
    }

    #[test]
    fn spearman_ignores_any_growing_map(a in proptest::collection::vec(-5.0..5.0f64, 2..30)) {
        let b: Vec<f64> = a.iter().map(|x| x.exp()).collect();
        if let Some(got) = spearman(&a, &b) {
            prop_assert!((got - 1.0).abs() < 1e-9);
        }
    }
}
