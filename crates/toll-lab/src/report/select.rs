// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the values of a metric in results: by variant, policy and section, for each round.

use crate::counters::Counters;
use crate::results::{Detail, Entry, Results};
use crate::scenario::{Goal, Metric, Name, Policies, Side, captured};
use toll_model::stats;

/// A section that a goal applies to, and what the `*` of its pattern stands for.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub section: &'a str,
    star: &'a str,
}

/// One of a goal's configurations.
#[derive(Clone, Copy)]
pub struct Configuration<'a> {
    side: &'a Side,
    variant: &'a str,
    policy: Option<&'a str>,
}

pub fn ours(goal: &Goal) -> Configuration<'_> {
    Configuration {
        side: &goal.ours,
        variant: goal.our_variant(),
        policy: goal.ours.policy.as_deref(),
    }
}

pub fn other<'a>(goal: &'a Goal, side: &'a Side) -> Configuration<'a> {
    Configuration {
        side,
        variant: goal.base_variant(side),
        policy: goal.base_policy(side),
    }
}

/// Lists the sections that a goal applies to, sizes in their order.
pub fn places<'a>(goal: &Goal, results: &'a Results) -> Vec<Place<'a>> {
    let ours = results
        .results
        .iter()
        .filter(|entry| entry.variant == goal.our_variant());
    let place = |entry: &'a Entry| {
        let mut stars = goal.sections.iter();
        let star = stars.find_map(|pattern| captured(pattern, &entry.section))?;
        Some(Place {
            section: &entry.section,
            star,
        })
    };
    let mut found: Vec<Place<'a>> = ours.filter_map(place).collect();
    found.sort_by_key(|place| size_order(place.section));
    found.dedup_by_key(|place| place.section);
    found
}

/// Returns the goal's metric in each round of a configuration; `None` without such runs.
pub fn samples(
    goal: &Goal,
    results: &Results,
    from: Configuration<'_>,
    place: &Place<'_>,
) -> Option<Vec<f64>> {
    let sections: Vec<String> = match from.side.section.as_slice() {
        [] => vec![place.section.to_owned()],
        named => named
            .iter()
            .map(|name| name.replacen('*', place.star, 1))
            .collect(),
    };
    let find = |policy: &str, section: &str| {
        results.results.iter().find(|entry| {
            entry.variant == from.variant && entry.policy == policy && entry.section == section
        })
    };
    let of_policy = |policy: &str| {
        let entries = sections.iter().map(|section| find(policy, section));
        let each = entries.map(|entry| Some(runs(entry?, &goal.metric)));
        each.collect::<Option<Vec<_>>>().map(|each| add(&each))
    };
    let policies: Vec<&str> = match (from.policy, from.side.best_of.as_slice()) {
        (Some(policy), _) => vec![policy],
        (None, []) => policies(results, from.variant, sections.first()?),
        (None, several) => vec![lowest(several, of_policy)?],
    };
    let each = policies.into_iter().map(of_policy);
    let each = each.collect::<Option<Vec<_>>>()?;
    let combined = combine(from.side.policies, &each);
    (!combined.is_empty()).then_some(combined)
}

fn policies<'a>(results: &'a Results, variant: &str, section: &str) -> Vec<&'a str> {
    let is = |entry: &&Entry| entry.variant == variant && entry.section == section;
    let found = results.results.iter().filter(is);
    found.map(|entry| entry.policy.as_str()).collect()
}

/// Returns the policy with the lowest median.
fn lowest(policies: &[String], samples: impl Fn(&str) -> Option<Vec<f64>>) -> Option<&str> {
    let cost = |name: &String| stats::median(&samples(name)?);
    let found = policies.iter().filter_map(|name| Some((name, cost(name)?)));
    let lowest = found.min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(lowest.0)
}

/// Adds the values of each round.
fn add(each: &[Vec<f64>]) -> Vec<f64> {
    by_round(each, |values| values.iter().sum())
}

fn combine(how: Policies, each: &[Vec<f64>]) -> Vec<f64> {
    match how {
        Policies::Rounds => each.concat(),
        Policies::Sum => add(each),
        Policies::Median => by_round(each, |values| stats::median(values).unwrap_or(f64::NAN)),
        Policies::Max => by_round(each, |values| {
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        }),
    }
}

fn by_round(each: &[Vec<f64>], combine: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let rounds = each.iter().map(Vec::len).min().unwrap_or(0);
    let of_round = |round| {
        let values: Vec<f64> = each.iter().map(|values| values[round]).collect();
        combine(&values)
    };
    (0..rounds).map(of_round).collect()
}

/// Returns a metric of each run; of the last run only, if it uses the counts of a process.
pub fn runs(entry: &Entry, metric: &Metric) -> Vec<f64> {
    let of_run = |run: &Counters| metric.value(&|name| value(name, run, &entry.last));
    let first = match metric.is_of_a_process() {
        true => entry.runs.len().saturating_sub(1),
        false => 0,
    };
    entry.runs[first..].iter().map(of_run).collect()
}

/// A missing counter is 0; a missing process is no number.
fn value(name: &Name, run: &Counters, last: &Detail) -> f64 {
    match name {
        Name::Counter(name) => run.get(name).copied().unwrap_or(0.0),
        Name::Prefix(prefix) => {
            let of_prefix = run.iter().filter(|(name, _)| name.starts_with(prefix));
            of_prefix.map(|(_, value)| value).sum()
        }
        Name::Process { process, counter } => match last.processes.get(process) {
            Some(counts) => counts.get(counter).copied().unwrap_or(0) as f64,
            None => f64::NAN,
        },
    }
}

/// Orders sections by name, those that end with a size (`4k`, `2m`, `7g`) by the size.
pub fn size_order(section: &str) -> (String, u64) {
    let size = || {
        let (name, label) = section.rsplit_once('-')?;
        let unit = label
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(label.len());
        let shift = match &label[unit..] {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            _ => return None,
        };
        let number: u64 = label[..unit].parse().ok()?;
        Some((name.to_owned(), number << shift))
    };
    size().unwrap_or_else(|| (section.to_owned(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_their_order() {
        let mut names = ["a-16m", "a-4k", "b", "a-1g", "a-2m", "a-x2m"];
        names.sort_by_key(|name| size_order(name));
        assert_eq!(names, ["a-4k", "a-2m", "a-16m", "a-1g", "a-x2m", "b"]);
    }
}
