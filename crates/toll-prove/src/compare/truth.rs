// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulated comparisons with a known truth: how often a gain is called proved, and how often the
//! printed intervals contain the true ratio, with the checks that end the runs early.

use std::time::Duration;

use anyhow::Result;
use toll_act::permanent::Change;
use toll_model::random::Random;
use toll_model::stats::{self, Interval, SMALLEST_EFFECT, Verdict};

use super::schedule::{Executor, Ran, Rules, STOP_CONFIDENCE};
use super::{Comparison, Invocation, Sample, Variant, compare};

/// Noise of a run: standard deviation of its logarithm, and scale of a long upper tail.
const NOISE: f64 = 0.015;
const TAIL: f64 = 0.01;
/// Standard deviation of the change of the machine's speed from run to run.
const DRIFT: f64 = 0.004;
/// Seconds of a run of the first variant, and of all runs: 30 rounds of four variants, with six
/// checks that may end them early.
const RUN: f64 = 1.0;
const LIMIT: f64 = 120.0;

/// A machine with drift, and variants with known true speed-ups.
struct Simulated {
    random: Random,
    clock: f64,
    speed: f64,
    /// True speed-ups of all variants except the first, by name.
    truth: Vec<(&'static str, f64)>,
}

impl Simulated {
    fn new(trial: u64, truth: &[(&'static str, f64)]) -> Simulated {
        Simulated {
            random: Random::new(trial << 32),
            clock: 0.0,
            speed: 0.0,
            truth: truth.to_vec(),
        }
    }

    fn normal(&mut self) -> f64 {
        self.random.normals().0
    }

    fn noise(&mut self) -> f64 {
        NOISE * self.normal() + TAIL * self.normal().max(0.0).powi(2)
    }
}

impl Executor for Simulated {
    fn run(&mut self, variant: &Variant, until: Duration) -> Result<Ran> {
        self.speed += DRIFT * self.normal();
        let truth = self.truth.iter().find(|(name, _)| *name == variant.name);
        let ratio = truth.map_or(1.0, |(_, ratio)| *ratio);
        let elapsed = RUN / ratio * (self.speed + self.noise()).exp();
        let user = RUN / ratio * (self.speed + self.noise()).exp();
        if self.clock + elapsed > until.as_secs_f64() {
            return Ok(Ran::Late);
        }
        self.clock += elapsed;
        Ok(Ran::Done(Sample {
            elapsed,
            user,
            ..Sample::default()
        }))
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.clock)
    }
}

/// The results of many comparisons of the same truth.
#[derive(Debug, Default)]
struct Tally {
    comparisons: u32,
    /// Comparisons with a variant that is called proved.
    applied: u32,
    /// Comparisons with an interval above 1: what a rule without correction would apply.
    above: u32,
    /// Comparisons ended by a check, and those of them with a judged variant that was not settled.
    ended: u32,
    unsettled: u32,
    /// Variants with a true gain of 2 % or more, and those of them called proved.
    gains: u32,
    found: u32,
    /// Printed intervals, and those that contain the truth: of elapsed and of CPU time.
    intervals: [u32; 2],
    held: [u32; 2],
}

impl Tally {
    fn take(&mut self, comparison: &Comparison, truth: &[(&str, f64)]) {
        self.comparisons += 1;
        let proven = |name: &str| {
            comparison
                .variant(name)
                .is_some_and(|a| a.proven == Some(true))
        };
        self.applied += u32::from(truth.iter().any(|(name, _)| proven(name)));
        let above = |name: &str| comparison.variant(name).unwrap().speedup.unwrap().low > 1.0;
        self.above += u32::from(truth.iter().any(|(name, _)| above(name)));
        if !comparison.ran_out_of_time() {
            self.ended += 1;
            let open = |name: &str| !is_settled(comparison, name);
            self.unsettled += u32::from(truth.iter().any(|(name, _)| open(name)));
        }
        for (name, _) in truth.iter().filter(|gain| gain.1 >= 1.0 + SMALLEST_EFFECT) {
            self.gains += 1;
            self.found += u32::from(proven(name));
        }
        for (name, ratio) in truth {
            let variant = comparison.variant(name).unwrap();
            for (i, interval) in [variant.speedup, variant.cpu_speedup]
                .into_iter()
                .enumerate()
            {
                let interval = interval.unwrap();
                self.intervals[i] += 1;
                self.held[i] += u32::from((interval.low..=interval.high).contains(ratio));
            }
        }
    }

    fn share(&self) -> f64 {
        f64::from(self.applied) / f64::from(self.comparisons)
    }

    fn coverage(&self) -> [f64; 2] {
        [0, 1].map(|i| f64::from(self.held[i]) / f64::from(self.intervals[i]))
    }
}

/// Whether more rounds would not change the finding on a variant, at the early-stop confidence.
fn is_settled(comparison: &Comparison, name: &str) -> bool {
    let times = |name: &str| -> Vec<f64> {
        let runs = comparison.variant(name).unwrap().runs.iter();
        let counted = runs.filter(|run| run.round > 0);
        counted.map(|run| run.elapsed).collect()
    };
    let interval: Interval =
        stats::ratio_of_rounds(&times("none"), &times(name), STOP_CONFIDENCE).unwrap();
    interval.inside(SMALLEST_EFFECT) || interval.resolves_effect()
}

fn rules() -> Rules {
    Rules {
        pairs: None,
        deadline: Duration::from_secs_f64(LIMIT),
        each: false,
    }
}

/// Simulates comparisons of the program as it is, a plan and two changes, and prints the results.
fn simulate(what: &str, trials: u64, truth: [f64; 3]) -> Tally {
    let names = ["plan", "one", "two"];
    let truth: Vec<(&'static str, f64)> = names.into_iter().zip(truth).collect();
    let change = |name: &str| Variant::change(name, Change::default());
    let variants = [
        Variant::none(),
        Variant::plan("p"),
        change("one"),
        change("two"),
    ];
    let mut tally = Tally::default();
    for trial in 0..trials {
        let mut machine = Simulated::new(trial, &truth);
        let comparison = compare(&mut machine, "x", &variants, &rules(), None).unwrap();
        tally.take(&comparison, &truth);
    }
    let [elapsed, cpu] = tally.coverage();
    println!(
        "{what}: {} comparisons, {} ended by a check, {} of {} gains found, {:.1} % apply ({:.1} % without correction); 95 % intervals hold the truth in {:.1} % (elapsed) and {:.1} % (CPU)",
        tally.comparisons,
        tally.ended,
        tally.found,
        tally.gains,
        tally.share() * 100.0,
        f64::from(tally.above) / f64::from(tally.comparisons) * 100.0,
        elapsed * 100.0,
        cpu * 100.0
    );
    tally
}

/// 0.9: 2.5 standard errors below 0.95 for the 120 intervals of the smaller cases.
fn assert_held(tally: &Tally) {
    assert!(
        tally.coverage().iter().all(|share| *share >= 0.9),
        "{tally:?}"
    );
}

#[test]
fn nothing_is_seldom_applied_however_much_the_machine_drifts() {
    let tally = simulate("no effect, drift", 100, [1.0; 3]);
    assert!(tally.share() <= 0.05, "{tally:?}");
    // The checks had an effect.
    assert!(tally.ended >= 10, "{tally:?}");
    assert_held(&tally);
}

#[test]
fn what_is_judged_is_settled_before_a_look_ends_the_runs() {
    let tally = simulate("10 % by the plan, 5 % by a change", 40, [1.1, 1.05, 1.0]);
    assert!(tally.ended >= 10, "{tally:?}");
    assert_eq!(tally.unsettled, 0, "{tally:?}");
    assert!(tally.found * 10 >= tally.gains * 9, "{tally:?}");
    assert_held(&tally);
}

#[test]
fn the_intervals_of_an_effect_on_the_floor_hold_it() {
    let tally = simulate("2 % each", 40, [1.02; 3]);
    assert_held(&tally);
}

#[test]
fn an_effect_of_ten_percent_is_applied() {
    let tally = simulate("10 % by the plan", 40, [1.1, 1.0, 1.0]);
    assert!(tally.share() >= 0.95, "{tally:?}");
    assert_held(&tally);
}

/// The verdicts on two commands with this true ratio.
fn verdicts_on_two(trials: u64, ratio: f64) -> Vec<Verdict> {
    let command = || Invocation::program(&["x".into()]);
    let variants = Variant::two(command(), command());
    let one = |trial| {
        let mut machine = Simulated::new(trial, &[("b", ratio)]);
        let comparison = compare(&mut machine, "x", &variants, &rules(), None).unwrap();
        comparison.verdict
    };
    (0..trials).map(one).collect()
}

#[test]
fn a_command_is_seldom_faster_or_slower_than_itself() {
    let verdicts = verdicts_on_two(100, 1.0);
    let of = |wanted| verdicts.iter().filter(|it| **it == wanted).count();
    let wrong = of(Verdict::Faster) + of(Verdict::Slower);
    println!("equal commands: {wrong} of 100 called faster or slower");
    assert!(wrong <= 5, "{verdicts:?}");
    assert!(of(Verdict::NoDifference) > 0, "{verdicts:?}");
}

#[test]
fn a_second_command_that_is_ten_percent_off_is_found() {
    for (ratio, wanted) in [(1.1, Verdict::Faster), (0.9, Verdict::Slower)] {
        let verdicts = verdicts_on_two(40, ratio);
        let found = verdicts.iter().filter(|it| **it == wanted).count();
        assert!(found >= 38, "{ratio}: {verdicts:?}");
    }
}
