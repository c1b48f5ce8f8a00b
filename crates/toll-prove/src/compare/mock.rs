// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine for tests, with given run times and a simulated clock.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;

use super::sample::Sample;
use super::schedule::{Executor, Ran, Rules};
use super::variant::Variant;

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

/// Rules with a number of pairs, if any, and a time limit.
pub fn rules(pairs: Option<u32>, seconds: f64) -> Rules {
    let deadline = Duration::from_secs_f64(seconds);
    Rules {
        pairs,
        deadline,
        each: false,
    }
}
