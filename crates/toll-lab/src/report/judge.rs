// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares results with a goal.
//!
//! The quantity of the goal's bound is computed for each round. Its center and 95 % interval are
//! those of [`stats::ratio_of_rounds`], as everywhere in the project. A single round, and a quantity
//! that is not positive in every round, has no interval: then the quantity of the medians counts.

use serde::Serialize;
use toll_model::stats;

use super::select::{self, Place};
use crate::results::Results;
use crate::scenario::{Goal, Over, Quantity, Verdict};

/// One goal in one section, or in several together.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    pub goal: String,
    pub section: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Medians of the metric.
    pub base: Option<f64>,
    pub ours: Option<f64>,
    pub quantity: Quantity,
    pub value: Option<f64>,
    /// The 95 % interval; without one, both are the value.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub rounds: usize,
    pub bound: String,
    pub verdict: Verdict,
}

/// The goal's quantity in one section.
struct Compared {
    section: String,
    base: Option<f64>,
    ours: f64,
    /// The quantity of each round.
    rounds: Vec<f64>,
    /// The quantity of the medians.
    value: f64,
}

/// Judges a goal in each of its sections.
pub fn judge(goal: &Goal, results: &Results) -> Vec<Judged> {
    let compared: Vec<(Place<'_>, Option<Compared>)> = select::places(goal, results)
        .into_iter()
        .map(|place| (place, compare(goal, results, &place)))
        .collect();
    let each = || {
        let of_place = |(place, compared): &(Place<'_>, Option<Compared>)| match compared {
            Some(compared) => conclude(goal, compared),
            None => not_measured(goal, place.section),
        };
        compared.iter().map(of_place).collect::<Vec<_>>()
    };
    let nothing = || vec![not_measured(goal, &goal.sections.join(", "))];
    match goal.over {
        _ if compared.is_empty() => nothing(),
        Over::Each => each(),
        Over::Worst => vec![worst(goal, each())],
        Over::GeometricMean => {
            let all = compared.into_iter().map(|(_, compared)| compared);
            let mean = all.collect::<Option<Vec<_>>>().and_then(|it| mean(&it));
            mean.map_or_else(nothing, |mean| vec![conclude(goal, &mean)])
        }
    }
}

fn compare(goal: &Goal, results: &Results, place: &Place<'_>) -> Option<Compared> {
    let other = |side| select::samples(goal, results, select::other(goal, side), place);
    let ours = select::samples(goal, results, select::ours(goal), place)?;
    let base = match goal.bound.is_relative() {
        true => Some(other(&goal.base)?),
        false => None,
    };
    let best = match &goal.best {
        Some(side) => Some(other(side)?),
        None => None,
    };
    let median = |values: &[f64]| stats::median(values).filter(|it| it.is_finite());
    let ours_median = median(&ours)?;
    let base_median = match &base {
        Some(values) => Some(median(values)?),
        None => None,
    };
    let best_median = match &best {
        Some(values) => median(values)?,
        None => 0.0,
    };
    let quantity = goal.bound.quantity;
    let at = |values: &Option<Vec<f64>>, round: usize| match values {
        Some(values) => values.get(round).copied(),
        None => Some(0.0),
    };
    let of_round = |(round, ours): (usize, &f64)| {
        Some(quantity.of(*ours, at(&base, round)?, at(&best, round)?))
    };
    Some(Compared {
        section: place.section.to_owned(),
        base: base_median,
        ours: ours_median,
        rounds: ours.iter().enumerate().filter_map(of_round).collect(),
        value: quantity.of(ours_median, base_median.unwrap_or(0.0), best_median),
    })
}

/// The geometric mean of the sections, round by round. `None` if a quantity is not positive.
fn mean(sections: &[Compared]) -> Option<Compared> {
    let count = sections.len();
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let logs: f64 = values.map(f64::ln).sum();
        let mean = (logs / count as f64).exp();
        mean.is_finite().then_some(mean)
    };
    let rounds = sections.iter().map(|it| it.rounds.len()).min()?;
    let of_round = |round: usize| mean(&mut sections.iter().map(|it| it.rounds[round]));
    Some(Compared {
        section: format!("{count} sections"),
        base: None,
        ours: f64::NAN,
        rounds: (0..rounds).map(of_round).collect::<Option<_>>()?,
        value: mean(&mut sections.iter().map(|it| it.value))?,
    })
}

/// The section that reaches farthest to the wrong side of the bound.
fn worst(goal: &Goal, all: Vec<Judged>) -> Judged {
    let unchanged = unchanged(goal.bound.quantity);
    let badness = |it: &Judged| match (it.low, it.high) {
        (Some(low), Some(high)) => goal.bound.badness(low + unchanged, high + unchanged),
        _ => f64::INFINITY,
    };
    all.into_iter()
        .max_by(|one, other| badness(one).total_cmp(&badness(other)))
        .expect("a goal has a section")
}

fn conclude(goal: &Goal, compared: &Compared) -> Judged {
    let rounds = &compared.rounds;
    let is_usable = |value: &f64| value.is_finite() && *value > 0.0;
    let interval = match rounds.len() > 1 && rounds.iter().all(is_usable) {
        true => stats::ratio_of_rounds(rounds, &vec![1.0; rounds.len()], 0.95),
        false => None,
    };
    let value = compared.value;
    let (center, low, high) = match interval {
        Some(it) => (it.median, it.low, it.high),
        None => (value, value, value),
    };
    let verdict = match center.is_nan() {
        _ if rounds.len() < goal.min_runs => Verdict::NotShown,
        // Nothing on either side: no change, if that is enough.
        true => match goal.bound.verdict(1.0, 1.0) {
            Verdict::Met => Verdict::Met,
            _ => Verdict::NotShown,
        },
        false => goal.bound.verdict(low, high),
    };
    let known = |value: f64| (!value.is_nan()).then_some(value);
    let unchanged = unchanged(goal.bound.quantity);
    Judged {
        base: compared.base,
        ours: known(compared.ours),
        value: known(center - unchanged),
        low: known(low - unchanged),
        high: known(high - unchanged),
        rounds: rounds.len(),
        verdict,
        ..not_measured(goal, &compared.section)
    }
}

/// A change is computed as a ratio, and stored as the difference from 1.
fn unchanged(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Change => 1.0,
        _ => 0.0,
    }
}

fn not_measured(goal: &Goal, section: &str) -> Judged {
    Judged {
        goal: goal.name.clone(),
        section: section.to_owned(),
        published: goal.published.clone(),
        base: None,
        ours: None,
        quantity: goal.bound.quantity,
        value: None,
        low: None,
        high: None,
        rounds: 0,
        bound: goal.bound.text.clone(),
        verdict: Verdict::NotMeasured,
    }
}
