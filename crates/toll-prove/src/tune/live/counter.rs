// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a process's progress.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use toll_act::signals;
use toll_linux::counters::Counters;
use toll_linux::{Root, proc};
use toll_model::losses::Scope;

use super::command;
use super::lines::Lines;
use crate::compare::schedule::Ran;

/// What counts up with the work.
#[derive(Debug)]
pub(super) enum Counter {
    Command(String),
    Lines(Lines),
    /// Calls of read and write.
    Calls,
    /// Instructions in user mode and the kernel, by the PMU.
    Instructions(Box<Counters>),
}

/// A counter's value at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub at: Instant,
    pub units: f64,
    /// CPU time of the process so far.
    pub cpu: Duration,
    /// CPU cycles so far; only with instructions.
    pub cycles: Option<f64>,
}

impl Counter {
    /// Counts the instructions of a process; `None` without a PMU that counts them and cycles.
    pub fn instructions(pid: u32) -> Option<Counter> {
        let mut counters = Counters::of_process(&Root::system(), pid).ok()?;
        let seen = counters.read();
        seen.value(Scope::Tree, "instructions")?;
        seen.value(Scope::Tree, "cycles")?;
        Some(Counter::Instructions(Box::new(counters)))
    }

    /// One unit, in texts.
    pub fn unit(&self) -> String {
        match self {
            Counter::Command(_) => "unit of the metric command".to_owned(),
            Counter::Lines(lines) => format!("line of {}", lines.path().display()),
            Counter::Calls => "call of read or write".to_owned(),
            Counter::Instructions(_) => "instruction".to_owned(),
        }
    }

    /// What has to hold so that the unit is one of progress.
    pub fn assumption(&self) -> Option<&'static str> {
        match self {
            Counter::Command(_) | Counter::Lines(_) => None,
            Counter::Calls => Some(
                "the process makes the same number of read and write calls for the same work, \
                 whatever its pages",
            ),
            Counter::Instructions(_) => Some(
                "the process executes the same instructions for the same work, whatever its pages",
            ),
        }
    }

    /// Time between two readings while a change is awaited.
    fn poll(&self) -> Duration {
        match self {
            Counter::Command(_) => Duration::from_millis(20),
            _ => Duration::from_millis(1),
        }
    }

    /// Reads the counter.
    ///
    /// # Errors
    /// The counter cannot be read, or the process has ended.
    pub fn read(&mut self, pid: u32) -> Result<Ran<Reading>> {
        let mut cycles = None;
        let units = match self {
            Counter::Command(line) => match command::output_of(line)? {
                Ran::Done(text) => command::number(line, &text)?,
                Ran::Late => return Ok(Ran::Late),
                Ran::Interrupted => return Ok(Ran::Interrupted),
            },
            Counter::Lines(lines) => {
                let path = lines.path().display().to_string();
                lines.count().context(path)? as f64
            }
            Counter::Calls => proc::calls(&Root::system(), pid)? as f64,
            Counter::Instructions(counters) => {
                let seen = counters.read();
                let value = |name| seen.value(Scope::Tree, name).map(|value| value as f64);
                cycles = value("cycles");
                value("instructions").context("instructions are no longer counted")?
            }
        };
        Ok(Ran::Done(Reading {
            at: Instant::now(),
            units,
            cpu: proc::cpu_time(pid)?,
            cycles,
        }))
    }

    /// Waits until the counter moves, so that a window holds whole units. [`Ran::Late`] if it stands
    /// still for `patience`.
    ///
    /// # Errors
    /// As [`Counter::read`].
    pub fn next(&mut self, pid: u32, patience: Duration) -> Result<Ran<Reading>> {
        let mut first = None;
        let end = Instant::now() + patience;
        loop {
            let reading = match self.read(pid)? {
                Ran::Done(reading) => reading,
                other => return Ok(other),
            };
            let before = *first.get_or_insert(reading.units);
            if reading.units != before {
                return Ok(Ran::Done(reading));
            }
            if signals::interrupted().is_some() {
                return Ok(Ran::Interrupted);
            }
            if Instant::now() > end {
                return Ok(Ran::Late);
            }
            std::thread::sleep(self.poll());
        }
    }
}
