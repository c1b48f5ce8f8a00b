// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedule of interleaved runs: the order of the variants, and the stopping rule.
//!
//! Pure except for the [`Executor`]: the tests use one with a simulated clock.
//!
//! - A round runs each variant once, in the order of a Williams design: in two rounds of two
//!   variants, six of three and four of four, each variant is equally often in each place and after
//!   each other variant. Effects that a run leaves behind (warm blocks, a host that must provide
//!   memory again) are distributed equally.
//! - The first round is a warm-up and is not counted.
//! - The interval is checked rarely (each check after a quarter more rounds), with more confidence
//!   than the printed interval has, because frequent checks often find an effect in noise.

use std::time::Duration;

use anyhow::Result;
use toll_model::stats::{self, Interval, SMALLEST_EFFECT};

use super::sample::{Resource, Sample};
use super::variant::Variant;

/// Counted rounds before the first check. The range of n rounds contains the true ratio with
/// probability 1 - 2^(1 - n): fewer than 8 cannot reach 99 %, whatever their interval, and the
/// comparisons that look best by chance would stop first.
pub const FEWEST: u32 = 8;
/// Maximum number of counted rounds, unless a number was given.
pub const MOST: u32 = 1000;
/// Confidence of printed intervals and of verdicts.
pub const CONFIDENCE: f64 = 0.95;
/// Confidence that ends the runs early.
pub const STOP_CONFIDENCE: f64 = 0.99;

/// Runs the target; mocked in tests.
pub trait Executor {
    /// Runs the variant once. After `until`, the target is ended and the run is [`Ran::Late`].
    fn run(&mut self, variant: &Variant, until: Duration) -> Result<Ran>;
    /// Time since a fixed moment.
    fn now(&self) -> Duration;
    /// Called before the runs of each round; the first, 0, is a warm-up.
    fn begin_round(&mut self, _round: u32) {}
    /// The compared quantity; the direction of a server's metric is known after the first run.
    fn resource(&self) -> Resource {
        Resource::Elapsed
    }
    /// The most memory touched before a run, bytes.
    fn warmed(&self) -> u64 {
        0
    }
    /// Called before each run.
    fn progress(&mut self, _message: &str) {}
}

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Ran {
    Done(Sample),
    /// It was ended at the limit.
    Late,
    /// The user interrupted.
    Interrupted,
}

/// When to stop.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Counted rounds, if a number was given.
    pub pairs: Option<u32>,
    /// By the executor's clock.
    pub deadline: Duration,
    /// Whether each variant must be resolved against the first, not only the second and the judged
    /// ones.
    pub each: bool,
}

/// Why the runs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The requested number of pairs is reached.
    Pairs,
    /// The interval is smaller than the effect.
    Resolved,
    /// The interval lies within +/- 2 %.
    NoEffect,
    /// The time limit.
    Time,
    /// A single run took longer than the time limit.
    TooLong,
    /// The user interrupted.
    Interrupted,
}

/// All runs, and why they ended.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Per variant, in the order of rounds; an interrupted round is partial.
    pub variants: Vec<Vec<Sample>>,
    pub stopped: Stopped,
    /// The compared quantity.
    pub resource: Resource,
}

impl Runs {
    /// Complete rounds, including the first.
    pub fn rounds(&self) -> u32 {
        self.variants.iter().map(Vec::len).min().unwrap_or(0) as u32
    }

    /// The counted runs of a variant: of complete rounds, without the first. If the time sufficed
    /// for a single round only, that round counts.
    pub fn counted(&self, variant: usize) -> &[Sample] {
        let rounds = self.rounds() as usize;
        &self.variants[variant][usize::from(rounds > 1)..rounds]
    }

    /// Speed-up of a variant over the first one; needs two counted rounds.
    pub fn speedup(&self, variant: usize, resource: Resource, confidence: f64) -> Option<Interval> {
        if self.counted(0).len() < 2 {
            return None;
        }
        let times = |variant: usize| -> Vec<f64> {
            self.counted(variant)
                .iter()
                .map(|s| resource.time_of(s))
                .collect()
        };
        stats::ratio_of_rounds(&times(0), &times(variant), confidence)
    }
}

/// The order of the variants in a round: a row of a Williams design (1949). In a block of rounds
/// (as many as variants, twice as many for an odd number), each variant is equally often in each
/// place, and equally often directly after each other variant.
pub fn order(round: u32, variants: usize) -> Vec<usize> {
    let round = round as usize;
    // An even number needs no mirrored rows.
    let row = if variants % 2 == 0 { round } else { round / 2 };
    let variant = |place: usize| (zigzag(place, variants) + row) % variants;
    let mut order: Vec<usize> = (0..variants).map(variant).collect();
    if variants % 2 == 1 && round % 2 == 1 {
        order.reverse();
    }
    order
}

/// 0, 1, n - 1, 2, n - 2 and so on: all differences between neighbours are distinct.
fn zigzag(place: usize, variants: usize) -> usize {
    match place % 2 {
        1 => place.div_ceil(2),
        _ => (variants - place / 2) % variants,
    }
}

/// Runs the variants in rounds until the stopping rule applies. The second variant and each judged
/// one (the plan and the changes) must be resolved: a variant that may be applied is not judged on
/// the few runs that another one needs. The rules can require that all are.
///
/// `stored` has the runs of an earlier session, a list per variant, all empty if there was none.
/// Only their complete rounds are used. The machine is cold again, so an uncounted warm-up round
/// comes first.
pub fn go_on(
    executor: &mut dyn Executor,
    variants: &[Variant],
    rules: &Rules,
    stored: Vec<Vec<Sample>>,
) -> Result<Runs> {
    let mut runs = Runs {
        variants: stored,
        stopped: Stopped::Time,
        resource: executor.resource(),
    };
    let done = runs.rounds();
    for variant in &mut runs.variants {
        variant.truncate(done as usize);
    }
    let mut longest = vec![Duration::ZERO; variants.len()];
    let mut look = next_look(done).max(FEWEST);
    let warm_up = (done > 0).then_some(WARM_UP);
    for round in warm_up.into_iter().chain(done..) {
        if !fits(executor.now(), &longest, rules.deadline) {
            return Ok(runs);
        }
        let counts = Some(round) != warm_up;
        executor.begin_round(if counts { round } else { WARM_UP });
        for variant in order(round, variants.len()) {
            executor.progress(&message(round, &variants[variant], rules));
            let begun = executor.now();
            match executor.run(&variants[variant], rules.deadline)? {
                Ran::Done(sample) if counts => {
                    runs.variants[variant].push(Sample { round, ..sample })
                }
                Ran::Done(_) => {}
                Ran::Interrupted => {
                    return Ok(Runs {
                        stopped: Stopped::Interrupted,
                        ..runs
                    });
                }
                Ran::Late => {
                    return Ok(Runs {
                        stopped: late(round),
                        ..runs
                    });
                }
            }
            longest[variant] = longest[variant].max(executor.now().saturating_sub(begun));
        }
        runs.resource = executor.resource();
        if !counts {
            continue;
        }
        if let Some(stopped) = enough(&runs, variants, rules, round, &mut look) {
            return Ok(Runs { stopped, ..runs });
        }
    }
    Ok(runs)
}

/// The warm-up round.
const WARM_UP: u32 = 0;

/// The round of the next check: a quarter more.
fn next_look(round: u32) -> u32 {
    (round + round.div_ceil(4)).max(round + 1)
}

/// Whether another round is expected to end in time. Before the first round there is no estimate.
fn fits(now: Duration, longest: &[Duration], deadline: Duration) -> bool {
    now + longest.iter().sum::<Duration>() <= deadline && now < deadline
}

fn late(round: u32) -> Stopped {
    if round == 0 {
        Stopped::TooLong
    } else {
        Stopped::Time
    }
}

/// Returns why the runs should end after this round, if they should.
fn enough(
    runs: &Runs,
    variants: &[Variant],
    rules: &Rules,
    round: u32,
    look: &mut u32,
) -> Option<Stopped> {
    if let Some(pairs) = rules.pairs {
        return (round >= pairs).then_some(Stopped::Pairs);
    }
    if round >= MOST {
        return Some(Stopped::Pairs);
    }
    if round < *look {
        return None;
    }
    *look = next_look(round);
    let counts = |variant: &usize| *variant == 1 || rules.each || variants[*variant].is_judged();
    let settled: Option<Vec<Stopped>> = (1..variants.len())
        .filter(counts)
        .map(|variant| settled(runs, variant))
        .collect();
    match settled?.contains(&Stopped::Resolved) {
        true => Some(Stopped::Resolved),
        false => Some(Stopped::NoEffect),
    }
}

/// Returns why more runs would not change the finding on a variant, if so.
fn settled(runs: &Runs, variant: usize) -> Option<Stopped> {
    let interval = runs.speedup(variant, runs.resource, STOP_CONFIDENCE)?;
    if interval.inside(SMALLEST_EFFECT) {
        Some(Stopped::NoEffect)
    } else {
        interval.resolves_effect().then_some(Stopped::Resolved)
    }
}

fn message(round: u32, variant: &Variant, rules: &Rules) -> String {
    let of = rules.pairs.map(|n| format!(" of {n}")).unwrap_or_default();
    match round {
        0 => format!("warming up: {}", variant.name),
        _ => format!("pair {round}{of}: {}", variant.name),
    }
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// An executor with given run times and a simulated clock.
    pub struct Mock {
        pub clock: f64,
        /// Elapsed seconds per variant name, repeated cyclically.
        pub times: BTreeMap<String, Vec<f64>>,
        /// Fills in the other fields of a sample.
        pub fill: fn(&Variant, usize, &mut Sample),
        /// Simulates Ctrl-C after this many runs.
        pub interrupt_after: usize,
        pub log: Vec<String>,
    }

    impl Mock {
        pub fn new(times: &[(&str, &[f64])]) -> Mock {
            Mock {
                clock: 0.0,
                times: times
                    .iter()
                    .map(|(n, t)| ((*n).to_owned(), t.to_vec()))
                    .collect(),
                fill: |_, _, _| {},
                interrupt_after: usize::MAX,
                log: Vec::new(),
            }
        }
    }

    impl Executor for Mock {
        fn run(&mut self, variant: &Variant, until: Duration) -> Result<Ran> {
            if self.log.len() >= self.interrupt_after {
                return Ok(Ran::Interrupted);
            }
            let earlier = self
                .log
                .iter()
                .filter(|name| **name == variant.name)
                .count();
            let times = &self.times[&variant.name];
            let elapsed = times[earlier % times.len()];
            if self.clock + elapsed > until.as_secs_f64() {
                self.clock = until.as_secs_f64();
                return Ok(Ran::Late);
            }
            self.clock += elapsed;
            self.log.push(variant.name.clone());
            let mut sample = Sample {
                elapsed,
                user: elapsed,
                ..Sample::default()
            };
            (self.fill)(variant, earlier, &mut sample);
            Ok(Ran::Done(sample))
        }

        fn now(&self) -> Duration {
            Duration::from_secs_f64(self.clock)
        }
    }

    fn run(executor: &mut dyn Executor, variants: &[Variant], rules: &Rules) -> Result<Runs> {
        go_on(executor, variants, rules, vec![Vec::new(); variants.len()])
    }

    pub fn rules(pairs: Option<u32>, seconds: f64) -> Rules {
        let deadline = Duration::from_secs_f64(seconds);
        Rules {
            pairs,
            deadline,
            each: false,
        }
    }

    fn two() -> Vec<Variant> {
        vec![Variant::none(), Variant::all()]
    }

    #[test]
    fn orders_are_balanced() {
        let mut three: Vec<Vec<usize>> = (0..6).map(|round| order(round, 3)).collect();
        three.sort();
        three.dedup();
        assert_eq!(three.len(), 6);
        assert_eq!((order(0, 2), order(1, 2)), (vec![0, 1], vec![1, 0]));
        for variants in 2..7 {
            // A block of the design, at any start: the first round is not counted.
            let block = if variants % 2 == 0 {
                variants
            } else {
                2 * variants
            };
            for first in [0, 1, 5] {
                let orders: Vec<_> = (first..first + block)
                    .map(|r| order(r as u32, variants))
                    .collect();
                let followed = |a, b| {
                    let pairs = orders.iter().flat_map(|order| order.windows(2));
                    pairs.filter(|pair| *pair == [a, b]).count()
                };
                for a in 0..variants {
                    for place in 0..variants {
                        let there = orders.iter().filter(|order| order[place] == a).count();
                        assert_eq!(
                            there,
                            block / variants,
                            "{variants} variants: {a} at {place}"
                        );
                    }
                    for b in (0..variants).filter(|b| *b != a) {
                        assert_eq!(
                            followed(a, b),
                            block / variants,
                            "{variants} variants: {b} after {a}"
                        );
                    }
                }
            }
        }
        for variants in 1..7 {
            for round in 0..20 {
                let mut seen = order(round, variants);
                seen.sort_unstable();
                assert_eq!(seen, (0..variants).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn two_variants_take_turns_in_being_first() {
        let firsts: Vec<usize> = (0..8).map(|round| order(round, 2)[0]).collect();
        assert_eq!(firsts.iter().sum::<usize>(), 4, "{firsts:?}");
    }

    #[test]
    fn each_variant_is_waited_for_where_each_counts() {
        // The third one has too much noise for 8 rounds.
        let wild = [1.7, 2.3];
        let times: [(&str, &[f64]); 3] = [("none", &[2.0]), ("plan", &[1.0]), ("all", &wild)];
        let variants = [Variant::none(), Variant::plan("p"), Variant::all()];
        let second = run(&mut Mock::new(&times), &variants, &rules(None, 9999.0)).unwrap();
        assert_eq!(
            (second.stopped, second.rounds()),
            (Stopped::Resolved, FEWEST + 1)
        );
        let rules = Rules {
            each: true,
            ..rules(None, 60.0)
        };
        let each = run(&mut Mock::new(&times), &variants, &rules).unwrap();
        assert!(each.rounds() > FEWEST + 1, "{}", each.rounds());
    }

    #[test]
    fn each_variant_that_is_judged_is_waited_for() {
        // The change gains, with too much noise to prove it in 8 rounds.
        let wild = [1.5, 1.9, 1.6, 1.85];
        let times: [(&str, &[f64]); 4] = [
            ("none", &[2.0]),
            ("plan", &[1.0]),
            ("all", &wild),
            ("change", &wild),
        ];
        let change = Variant::change("change", toll_act::permanent::Change::default());
        let rounds = |last: Variant| {
            let variants = [Variant::none(), Variant::plan("p"), last];
            let runs = run(&mut Mock::new(&times), &variants, &rules(None, 9999.0)).unwrap();
            assert_eq!(runs.stopped, Stopped::Resolved);
            runs.rounds()
        };
        // Everything huge is never applied.
        assert_eq!(rounds(Variant::all()), FEWEST + 1);
        assert!(rounds(change) > FEWEST + 1);
    }

    #[test]
    fn the_number_of_pairs_is_kept_and_the_first_is_dropped() {
        let mut mock = Mock::new(&[("none", &[9.0, 2.0]), ("all", &[9.0, 1.0])]);
        let runs = run(&mut mock, &two(), &rules(Some(3), 1000.0)).unwrap();
        assert_eq!((runs.rounds(), runs.stopped), (4, Stopped::Pairs));
        assert_eq!(runs.counted(0).len(), 3);
        assert_eq!(runs.counted(0)[0].elapsed, 2.0);
    }

    #[test]
    fn a_clear_effect_ends_it_early() {
        let mut mock = Mock::new(&[("none", &[2.0, 2.01]), ("all", &[1.0, 1.01])]);
        let runs = run(&mut mock, &two(), &rules(None, 1000.0)).unwrap();
        assert_eq!(
            (runs.rounds(), runs.stopped),
            (FEWEST + 1, Stopped::Resolved)
        );
    }

    #[test]
    fn no_effect_ends_it_early() {
        let mut mock = Mock::new(&[("none", &[2.0, 2.001]), ("all", &[2.001, 2.0])]);
        let runs = run(&mut mock, &two(), &rules(None, 1000.0)).unwrap();
        assert_eq!(
            (runs.rounds(), runs.stopped),
            (FEWEST + 1, Stopped::NoEffect)
        );
    }

    #[test]
    fn noise_is_hunted_until_the_time_is_up_and_not_beyond() {
        let mut mock = Mock::new(&[
            ("none", &[2.0, 2.6, 1.9, 2.2, 2.9]),
            ("all", &[2.5, 1.9, 2.1, 2.8, 1.8, 2.4, 2.0]),
        ]);
        let runs = run(&mut mock, &two(), &rules(None, 60.0)).unwrap();
        assert_eq!(runs.stopped, Stopped::Time);
        assert!(
            mock.clock <= 60.0 && mock.clock > 60.0 - 5.7,
            "{}",
            mock.clock
        );
    }

    #[test]
    fn a_run_longer_than_the_limit_is_ended_at_the_limit() {
        let mut mock = Mock::new(&[("none", &[500.0]), ("all", &[500.0])]);
        let runs = run(&mut mock, &two(), &rules(None, 60.0)).unwrap();
        assert_eq!((runs.rounds(), runs.stopped), (0, Stopped::TooLong));
        assert_eq!(mock.clock, 60.0);
    }

    #[test]
    fn an_interrupt_keeps_the_complete_rounds() {
        let mut mock = Mock::new(&[("none", &[2.0]), ("all", &[1.0])]);
        mock.interrupt_after = 7;
        let runs = run(&mut mock, &two(), &rules(None, 600.0)).unwrap();
        assert_eq!((runs.rounds(), runs.stopped), (3, Stopped::Interrupted));
        assert_eq!(runs.counted(0).len(), 2);
    }

    #[test]
    fn stored_rounds_are_gone_on_from_after_another_warm_up() {
        let early = |elapsed: &[f64]| -> Vec<Sample> {
            let sample = |(round, elapsed): (usize, &f64)| Sample {
                round: round as u32,
                elapsed: *elapsed,
                ..Sample::default()
            };
            elapsed.iter().enumerate().map(sample).collect()
        };
        // The third round is incomplete.
        let stored = vec![early(&[9.0, 2.0, 2.1]), early(&[9.0, 1.0])];
        let mut mock = Mock::new(&[("none", &[8.0, 2.2, 2.3]), ("all", &[8.0, 1.2, 1.3])]);
        let runs = go_on(&mut mock, &two(), &rules(Some(3), 1000.0), stored).unwrap();
        assert_eq!((runs.rounds(), runs.stopped), (4, Stopped::Pairs));
        let elapsed = |variant: usize| -> Vec<f64> {
            runs.variants[variant].iter().map(|s| s.elapsed).collect()
        };
        assert_eq!(elapsed(0), [9.0, 2.0, 2.2, 2.3]);
        assert_eq!(elapsed(1), [9.0, 1.0, 1.2, 1.3]);
        let rounds: Vec<u32> = runs.variants[0].iter().map(|s| s.round).collect();
        assert_eq!(rounds, [0, 1, 2, 3]);
    }

    #[test]
    fn where_nothing_is_to_be_found_little_is_found() {
        // A linear congruential generator: the noise is the same in each test run.
        let mut state = 7u64;
        let mut noise = || {
            let mut sum = 0.0;
            for _ in 0..6 {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                sum += (state >> 33) as f64 / (1u64 << 31) as f64;
            }
            1.0 + (sum - 3.0) * 0.04
        };
        let trials = 25;
        let mut wrong = 0;
        for _ in 0..trials {
            let none: Vec<f64> = (0..60).map(|_| noise()).collect();
            let all: Vec<f64> = (0..60).map(|_| noise()).collect();
            let mut mock = Mock::new(&[("none", &none), ("all", &all)]);
            let runs = run(&mut mock, &two(), &rules(None, 80.0)).unwrap();
            let interval = runs.speedup(1, Resource::Elapsed, CONFIDENCE).unwrap();
            wrong += usize::from(matches!(
                interval.verdict(),
                stats::Verdict::Faster | stats::Verdict::Slower
            ));
        }
        assert!(wrong * 100 <= trials * 8, "{wrong} of {trials}");
    }
}
