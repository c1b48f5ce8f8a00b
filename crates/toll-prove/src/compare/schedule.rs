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
pub(crate) const FEWEST: u32 = 8;
/// Maximum number of counted rounds, unless a number was given.
pub(crate) const MOST: u32 = 1000;
/// Confidence of printed intervals and of verdicts.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Confidence that ends the runs early.
pub(crate) const STOP_CONFIDENCE: f64 = 0.99;

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

/// How a run, or a part of one, ended.
#[derive(Debug, Clone)]
pub enum Ran<T = Sample> {
    Done(T),
    /// It was ended at the limit.
    Late,
    /// The user interrupted.
    Interrupted,
}

impl<T> Ran<T> {
    /// Goes on with `next` if this part was done.
    pub(crate) fn and_then<U>(self, next: impl FnOnce(T) -> Result<Ran<U>>) -> Result<Ran<U>> {
        match self {
            Ran::Done(value) => next(value),
            Ran::Late => Ok(Ran::Late),
            Ran::Interrupted => Ok(Ran::Interrupted),
        }
    }
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
pub(crate) fn go_on(
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
mod tests;
