// SPDX-License-Identifier: MIT OR Apache-2.0
//! The schedule of interleaved runs: which arm runs when, and when it is enough.
//!
//! Pure but for the [`Executor`]: the tests drive it with one that has a clock of its own.
//!
//! - A round runs each arm once, in the order of a Williams design: two rounds of two arms, six of
//!   three and four of four have each arm equally often in each place and after each other arm:
//!   whatever a run leaves behind (warm blocks, a host that must provide memory again) meets all alike.
//! - The first round warms up and is not counted.
//! - Looks at the interval are rare (each adds a quarter more rounds) and ask for more
//!   confidence than the printed interval has, since looking often finds an effect in noise.

use std::time::Duration;

use anyhow::Result;
use toll_model::stats::{self, Interval, SMALLEST_EFFECT};

use super::arm::Arm;
use super::sample::{Resource, Sample};

/// Counted rounds before the first look. The range of n rounds holds the true ratio with
/// probability 1 - 2^(1 - n): fewer than 8 cannot be sure to 99 %, whatever their interval says,
/// and those that look best at once stop first.
pub const FEWEST: u32 = 8;
/// Counted rounds at most, unless a number was asked for.
pub const MOST: u32 = 1000;
/// Confidence of printed intervals and of verdicts.
pub const CONFIDENCE: f64 = 0.95;
/// Confidence that ends the runs early.
pub const STOP_CONFIDENCE: f64 = 0.99;

/// Runs the target; the real one, or a test's.
pub trait Executor {
    /// Runs the arm once. Past `until`, the target is ended and the run is [`Ran::Late`].
    fn run(&mut self, arm: &Arm, until: Duration) -> Result<Ran>;
    /// Time since some fixed moment.
    fn now(&self) -> Duration;
    /// Told before the runs of each round; the first, 0, only warms up.
    fn begin_round(&mut self, _round: u32) {}
    /// What is compared; a server's metric tells its direction with the first run.
    fn resource(&self) -> Resource {
        Resource::Elapsed
    }
    /// The most memory that was touched before a run, bytes.
    fn warmed(&self) -> u64 {
        0
    }
    /// Told before each run.
    fn progress(&mut self, _message: &str) {}
}

/// How a run ended.
#[derive(Debug, Clone)]
pub enum Ran {
    Done(Sample),
    /// It was ended at the limit.
    Late,
    /// The user asked to stop.
    Interrupted,
}

/// How long to go on.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Counted rounds, if a number was asked for.
    pub pairs: Option<u32>,
    /// By the executor's clock.
    pub deadline: Duration,
    /// Whether each arm must be resolved against the first, not only the second and those that
    /// are judged.
    pub each: bool,
}

/// Why the runs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The number of pairs that was asked for.
    Pairs,
    /// The interval is smaller than the effect.
    Resolved,
    /// The interval lies within +/- 2 %.
    NoEffect,
    /// The time limit.
    Time,
    /// A single run took longer than the time limit.
    TooLong,
    /// The user.
    Interrupted,
}

/// All runs, and why there are no more.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Per arm, in the order of rounds; an interrupted round is there in part.
    pub arms: Vec<Vec<Sample>>,
    pub stopped: Stopped,
    /// What the arms are compared by.
    pub resource: Resource,
}

impl Runs {
    /// Complete rounds, the first included.
    pub fn rounds(&self) -> u32 {
        self.arms.iter().map(Vec::len).min().unwrap_or(0) as u32
    }

    /// The runs of an arm that count: of complete rounds, without the first.
    /// A single round, for which the time sufficed, counts: it is all there is.
    pub fn counted(&self, arm: usize) -> &[Sample] {
        let rounds = self.rounds() as usize;
        &self.arms[arm][usize::from(rounds > 1)..rounds]
    }

    /// Speed-up of an arm over the first one; needs two counted rounds.
    pub fn speedup(&self, arm: usize, resource: Resource, confidence: f64) -> Option<Interval> {
        if self.counted(0).len() < 2 {
            return None;
        }
        let times = |arm: usize| -> Vec<f64> {
            self.counted(arm)
                .iter()
                .map(|s| resource.time_of(s))
                .collect()
        };
        stats::ratio_of_rounds(&times(0), &times(arm), confidence)
    }
}

/// The order of `arms` arms in a round: a row of a Williams design (1949). In as many consecutive
/// rounds as there are arms, twice as many for an odd number, each arm comes equally often
/// in each place, and equally often directly after each other arm.
pub fn order(round: u32, arms: usize) -> Vec<usize> {
    let round = round as usize;
    // An even number needs no mirror images: they are rows already.
    let row = if arms % 2 == 0 { round } else { round / 2 };
    let arm = |place: usize| (zigzag(place, arms) + row) % arms;
    let mut order: Vec<usize> = (0..arms).map(arm).collect();
    if arms % 2 == 1 && round % 2 == 1 {
        order.reverse();
    }
    order
}

/// 0, 1, n - 1, 2, n - 2 and so on: the steps between neighbours are all different.
fn zigzag(place: usize, arms: usize) -> usize {
    match place % 2 {
        1 => place.div_ceil(2),
        _ => (arms - place / 2) % arms,
    }
}

/// Runs the arms in rounds until it is enough. The second arm must be resolved, and each that is
/// judged (the plan and the changes): what may be applied is not judged on the few runs that
/// another one needs. The rules may say that all must.
///
/// `stored` has the runs of an earlier session, a list for each arm, all empty where there was none.
/// Only their complete rounds are taken. The machine is cold again: a round that is not kept comes first.
pub fn go_on(
    executor: &mut dyn Executor,
    arms: &[Arm],
    rules: &Rules,
    stored: Vec<Vec<Sample>>,
) -> Result<Runs> {
    let mut runs = Runs {
        arms: stored,
        stopped: Stopped::Time,
        resource: executor.resource(),
    };
    let done = runs.rounds();
    for arm in &mut runs.arms {
        arm.truncate(done as usize);
    }
    let mut longest = vec![Duration::ZERO; arms.len()];
    let mut look = next_look(done).max(FEWEST);
    let warm_up = (done > 0).then_some(WARM_UP);
    for round in warm_up.into_iter().chain(done..) {
        if !fits(executor.now(), &longest, rules.deadline) {
            return Ok(runs);
        }
        let counts = Some(round) != warm_up;
        executor.begin_round(if counts { round } else { WARM_UP });
        for arm in order(round, arms.len()) {
            executor.progress(&message(round, &arms[arm], rules));
            let begun = executor.now();
            match executor.run(&arms[arm], rules.deadline)? {
                Ran::Done(sample) if counts => runs.arms[arm].push(Sample { round, ..sample }),
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
            longest[arm] = longest[arm].max(executor.now().saturating_sub(begun));
        }
        runs.resource = executor.resource();
        if !counts {
            continue;
        }
        if let Some(stopped) = enough(&runs, arms, rules, round, &mut look) {
            return Ok(Runs { stopped, ..runs });
        }
    }
    Ok(runs)
}

/// The round that only warms up.
const WARM_UP: u32 = 0;

/// The round of the look after one in this round: a quarter more.
fn next_look(round: u32) -> u32 {
    (round + round.div_ceil(4)).max(round + 1)
}

/// Whether another round is expected to end in time. Before the first there is nothing to go by.
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

/// Why the runs should end after this round, if they should.
fn enough(runs: &Runs, arms: &[Arm], rules: &Rules, round: u32, look: &mut u32) -> Option<Stopped> {
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
    let counts = |arm: &usize| *arm == 1 || rules.each || arms[*arm].is_judged();
    let settled: Option<Vec<Stopped>> = (1..arms.len())
        .filter(counts)
        .map(|arm| settled(runs, arm))
        .collect();
    match settled?.contains(&Stopped::Resolved) {
        true => Some(Stopped::Resolved),
        false => Some(Stopped::NoEffect),
    }
}

/// Whether more runs would say no more about an arm, and why.
fn settled(runs: &Runs, arm: usize) -> Option<Stopped> {
    let interval = runs.speedup(arm, runs.resource, STOP_CONFIDENCE)?;
    if interval.inside(SMALLEST_EFFECT) {
        Some(Stopped::NoEffect)
    } else {
        interval.resolves_effect().then_some(Stopped::Resolved)
    }
}

fn message(round: u32, arm: &Arm, rules: &Rules) -> String {
    let of = rules.pairs.map(|n| format!(" of {n}")).unwrap_or_default();
    match round {
        0 => format!("warming up: {}", arm.name),
        _ => format!("pair {round}{of}: {}", arm.name),
    }
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// An executor whose runs take the times that it is told, by a clock of its own.
    pub struct Mock {
        pub clock: f64,
        /// Elapsed seconds of an arm by its name, cycled through.
        pub times: BTreeMap<String, Vec<f64>>,
        /// What else is in a sample.
        pub fill: fn(&Arm, usize, &mut Sample),
        /// After this many runs the user presses Ctrl-C.
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
        fn run(&mut self, arm: &Arm, until: Duration) -> Result<Ran> {
            if self.log.len() >= self.interrupt_after {
                return Ok(Ran::Interrupted);
            }
            let earlier = self.log.iter().filter(|name| **name == arm.name).count();
            let times = &self.times[&arm.name];
            let elapsed = times[earlier % times.len()];
            if self.clock + elapsed > until.as_secs_f64() {
                self.clock = until.as_secs_f64();
                return Ok(Ran::Late);
            }
            self.clock += elapsed;
            self.log.push(arm.name.clone());
            let mut sample = Sample {
                elapsed,
                user: elapsed,
                ..Sample::default()
            };
            (self.fill)(arm, earlier, &mut sample);
            Ok(Ran::Done(sample))
        }

        fn now(&self) -> Duration {
            Duration::from_secs_f64(self.clock)
        }
    }

    fn run(executor: &mut dyn Executor, arms: &[Arm], rules: &Rules) -> Result<Runs> {
        go_on(executor, arms, rules, vec![Vec::new(); arms.len()])
    }

    pub fn rules(pairs: Option<u32>, seconds: f64) -> Rules {
        let deadline = Duration::from_secs_f64(seconds);
        Rules {
            pairs,
            deadline,
            each: false,
        }
    }

    fn two() -> Vec<Arm> {
        vec![Arm::none(), Arm::all()]
    }

    #[test]
    fn orders_are_balanced() {
        let mut three: Vec<Vec<usize>> = (0..6).map(|round| order(round, 3)).collect();
        three.sort();
        three.dedup();
        assert_eq!(three.len(), 6);
        assert_eq!((order(0, 2), order(1, 2)), (vec![0, 1], vec![1, 0]));
        for arms in 2..7 {
            // A block of the design, wherever it begins: the first round is not counted.
            let block = if arms % 2 == 0 { arms } else { 2 * arms };
            for first in [0, 1, 5] {
                let orders: Vec<_> = (first..first + block)
                    .map(|r| order(r as u32, arms))
                    .collect();
                let followed = |a, b| {
                    let pairs = orders.iter().flat_map(|order| order.windows(2));
                    pairs.filter(|pair| *pair == [a, b]).count()
                };
                for a in 0..arms {
                    for place in 0..arms {
                        let there = orders.iter().filter(|order| order[place] == a).count();
                        assert_eq!(there, block / arms, "{arms} arms: {a} at {place}");
                    }
                    for b in (0..arms).filter(|b| *b != a) {
                        assert_eq!(followed(a, b), block / arms, "{arms} arms: {b} after {a}");
                    }
                }
            }
        }
        for arms in 1..7 {
            for round in 0..20 {
                let mut seen = order(round, arms);
                seen.sort_unstable();
                assert_eq!(seen, (0..arms).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn two_arms_take_turns_in_being_first() {
        let firsts: Vec<usize> = (0..8).map(|round| order(round, 2)[0]).collect();
        assert_eq!(firsts.iter().sum::<usize>(), 4, "{firsts:?}");
    }

    #[test]
    fn each_arm_is_waited_for_where_each_counts() {
        // The third one scatters too much for 8 rounds.
        let wild = [1.7, 2.3];
        let times: [(&str, &[f64]); 3] = [("none", &[2.0]), ("plan", &[1.0]), ("all", &wild)];
        let arms = [Arm::none(), Arm::plan("p"), Arm::all()];
        let second = run(&mut Mock::new(&times), &arms, &rules(None, 9999.0)).unwrap();
        assert_eq!(
            (second.stopped, second.rounds()),
            (Stopped::Resolved, FEWEST + 1)
        );
        let rules = Rules {
            each: true,
            ..rules(None, 60.0)
        };
        let each = run(&mut Mock::new(&times), &arms, &rules).unwrap();
        assert!(each.rounds() > FEWEST + 1, "{}", each.rounds());
    }

    #[test]
    fn each_arm_that_is_judged_is_waited_for() {
        // The change gains, and scatters too much for 8 rounds to show it.
        let wild = [1.5, 1.9, 1.6, 1.85];
        let times: [(&str, &[f64]); 4] = [
            ("none", &[2.0]),
            ("plan", &[1.0]),
            ("all", &wild),
            ("change", &wild),
        ];
        let change = Arm::change("change", super::super::Change::default());
        let rounds = |last: Arm| {
            let arms = [Arm::none(), Arm::plan("p"), last];
            let runs = run(&mut Mock::new(&times), &arms, &rules(None, 9999.0)).unwrap();
            assert_eq!(runs.stopped, Stopped::Resolved);
            runs.rounds()
        };
        // Nobody applies everything huge.
        assert_eq!(rounds(Arm::all()), FEWEST + 1);
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
        let elapsed =
            |arm: usize| -> Vec<f64> { runs.arms[arm].iter().map(|s| s.elapsed).collect() };
        assert_eq!(elapsed(0), [9.0, 2.0, 2.2, 2.3]);
        assert_eq!(elapsed(1), [9.0, 1.0, 1.2, 1.3]);
        let rounds: Vec<u32> = runs.arms[0].iter().map(|s| s.round).collect();
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
