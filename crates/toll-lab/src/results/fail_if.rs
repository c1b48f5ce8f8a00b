// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evaluates conditions: the requirements of a scenario, and `--fail-if`.

use super::{Entry, MAIN, Results};
use crate::scenario::{Condition, Limit};

/// Describes each run in which a condition on a value does not hold in the main section. A missing
/// counter is 0.
pub fn broken(condition: &Condition, results: &Results) -> Vec<String> {
    let Limit::Value(limit) = condition.limit else {
        return vec![format!("{condition}: a change cannot be a requirement")];
    };
    let mains = results.results.iter().filter(|entry| entry.section == MAIN);
    let say = |entry: &Entry, value: f64| {
        let place = format!("{}, {}", entry.variant, entry.policy);
        format!("{place}: {condition} is required, found {value}")
    };
    mains
        .flat_map(|entry| {
            let values = entry.values(&condition.counter).into_iter();
            values
                .filter(|value| !condition.compare(*value, limit))
                .map(|value| say(entry, value))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Describes each place where the condition holds.
///
/// # Errors
/// No entry has the counter, or there is no second variant for a relative condition.
pub fn holds(condition: &Condition, results: &Results) -> Result<Vec<String>, String> {
    let counter = &condition.counter;
    let is_there = |entry: &Entry| entry.counters.contains_key(counter);
    if !results.results.iter().any(is_there) {
        return Err(format!("{counter}: no such counter in this scenario"));
    }
    let variants = results.variants();
    if matches!(condition.limit, Limit::Change(_)) && variants.len() < 2 {
        return Err(format!("{condition}: a change needs two variants"));
    }
    let found = results
        .results
        .iter()
        .filter_map(|entry| holds_in(condition, results, entry));
    Ok(found.collect())
}

fn holds_in(condition: &Condition, results: &Results, entry: &Entry) -> Option<String> {
    let of = |entry: &Entry| entry.counters.get(&condition.counter).map(|it| it.median);
    let value = of(entry)?;
    let (is, said) = match condition.limit {
        Limit::Value(limit) => (condition.compare(value, limit), format!("{value}")),
        Limit::Change(change) => {
            let first = results.variants().first().copied()?.to_owned();
            if entry.variant == first {
                return None;
            }
            let base = of(results.counterpart(entry, &first)?)?;
            let is = condition.compare(value, base * (1.0 + change));
            (is, format!("{value}, and {base} with {first}"))
        }
    };
    let place = format!("{}, {}, {}", entry.variant, entry.policy, entry.section);
    is.then(|| format!("{condition}: {place}: {said}"))
}

#[cfg(test)]
mod tests;
