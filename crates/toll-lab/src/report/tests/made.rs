// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up results.

use crate::counters::Counters;
use crate::results::tests::example;
use crate::results::{Detail, Entry, Results};

/// Made-up counts of one configuration, for each round.
#[derive(Clone)]
pub(crate) struct Made {
    variant: String,
    policy: String,
    section: String,
    rounds: Vec<Counters>,
    processes: Vec<(&'static str, Counters)>,
}

impl Made {
    pub(crate) fn new(
        variant: &str,
        policy: &str,
        section: &str,
        counters: &[(&str, f64)],
    ) -> Made {
        Made {
            variant: variant.to_owned(),
            policy: policy.to_owned(),
            section: section.to_owned(),
            rounds: vec![named(counters)],
            processes: Vec::new(),
        }
    }

    /// One counter in several rounds.
    pub(crate) fn rounds(
        variant: &str,
        policy: &str,
        section: &str,
        counter: &str,
        values: &[f64],
    ) -> Made {
        let rounds = values.iter().map(|value| named(&[(counter, *value)]));
        Made {
            rounds: rounds.collect(),
            ..Made::new(variant, policy, section, &[])
        }
    }

    pub(crate) fn with_process(mut self, name: &'static str, counters: &[(&str, f64)]) -> Made {
        self.processes.push((name, named(counters)));
        self
    }
}

fn named(counters: &[(&str, f64)]) -> Counters {
    let counters = counters.iter();
    counters
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

pub(crate) fn results(scenario: &str, made: &[Made]) -> Results {
    let of_made = |made: &Made| {
        let mut entry = Entry::new(&made.variant, &made.policy, &made.section);
        for round in &made.rounds {
            let counts = |(name, counters): &(&str, Counters)| {
                let counts = counters.iter();
                let counts = counts.map(|(name, value)| (name.clone(), *value as u64));
                ((*name).to_owned(), counts.collect())
            };
            let last = Detail {
                processes: made.processes.iter().map(counts).collect(),
                ..Detail::default()
            };
            entry.add(round.clone(), last, false);
        }
        entry
    };
    Results {
        scenario: scenario.to_owned(),
        results: made.iter().map(of_made).collect(),
        ..example(&[], &[])
    }
}
