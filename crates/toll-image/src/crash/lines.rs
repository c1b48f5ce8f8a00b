// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cache lines with stores that may not be persistent yet.

use std::collections::BTreeMap;

use super::random::Random;
use super::trace::{Event, Trace};
use crate::layout::LINE;

/// Stores to one line, in order.
#[derive(Debug, Clone, Default)]
struct Line {
    stores: Vec<(u64, u64)>,
    /// Those that the next fence makes persistent.
    flushed: usize,
}

/// The lines with stores that may be lost.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    lines: BTreeMap<u64, Line>,
}

/// How the states of a fence were chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Coverage {
    All,
    /// The number of states that there are.
    Sampled(f64),
}

/// Number of stores of each line that are persistent.
type Choice = Vec<usize>;

impl Lines {
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Follows a trace; a fence makes stores persistent in an image.
    pub fn follow(&mut self, event: &Event, durable: &mut Trace) {
        match event {
            Event::Store { offset, value } => {
                let line = self.lines.entry(offset / LINE).or_default();
                line.stores.push((*offset, *value));
            }
            Event::Flush(range) => {
                let lines = range.start / LINE..range.end.div_ceil(LINE);
                for (_, line) in self.lines.range_mut(lines) {
                    line.flushed = line.stores.len();
                }
            }
            Event::Fence => self.fence(durable),
        }
    }

    fn fence(&mut self, durable: &mut Trace) {
        self.lines.retain(|_, line| {
            for (offset, value) in line.stores.drain(..line.flushed) {
                durable.poke(offset, value);
            }
            line.flushed = 0;
            !line.stores.is_empty()
        });
    }

    /// The number of states that a crash can leave.
    pub fn states(&self) -> f64 {
        let counts = self
            .lines
            .values()
            .map(|line| line.stores.len() as f64 + 1.0);
        counts.product()
    }

    /// States: all, or if those are too many, some of them.
    pub fn choices(&self, most: usize, random: &mut Random) -> (Vec<Choice>, Coverage) {
        let states = self.states();
        match states <= most as f64 {
            true => (self.all(), Coverage::All),
            false => (self.some(most, random), Coverage::Sampled(states)),
        }
    }

    fn all(&self) -> Vec<Choice> {
        let mut choices = vec![Vec::new()];
        for line in self.lines.values() {
            let longer = |choice: Choice| {
                (0..=line.stores.len()).map(move |stores| [&choice[..], &[stores]].concat())
            };
            choices = choices.into_iter().flat_map(longer).collect();
        }
        choices
    }

    /// Nothing, everything, and each line alone or missing, before random states.
    fn some(&self, most: usize, random: &mut Random) -> Vec<Choice> {
        let full: Choice = self.lines.values().map(|line| line.stores.len()).collect();
        let none = vec![0; full.len()];
        let mut choices = vec![none.clone(), full.clone()];
        let first = random.below(full.len() as u64) as usize;
        for n in (0..full.len())
            .map(|n| (first + n) % full.len())
            .take(most / 4)
        {
            let swapped = |base: &Choice, with: &Choice| {
                let mut choice = base.clone();
                choice[n] = with[n];
                choice
            };
            choices.extend([swapped(&none, &full), swapped(&full, &none)]);
        }
        while choices.len() < most {
            let some = full
                .iter()
                .map(|stores| random.below(*stores as u64 + 1) as usize);
            choices.push(some.collect());
        }
        choices
    }

    /// Applies a choice to an image.
    pub fn apply(&self, choice: &Choice, durable: &mut Trace) {
        for (line, stores) in self.lines.values().zip(choice) {
            for (offset, value) in &line.stores[..*stores] {
                durable.poke(*offset, *value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
