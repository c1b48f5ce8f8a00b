// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sequences of operations, a crash at each point of their last one, and a second crash at each
//! point of the recovery.

use std::fmt;

use super::judge::{Allowed, judge};
use super::lines::{Coverage, Lines};
use super::model::{self, Model};
use super::op::Op;
use super::random::Random;
use super::trace::{Event, Trace};
use super::world::{Step, World};
use crate::fault::Fault;
use crate::recover::recover_with;
use crate::survey::survey;

/// What a search looked at.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Sequences in which all operations succeeded.
    pub sequences: u64,
    /// States after a crash, and after a second one in the recovery.
    pub states: u64,
    pub second: u64,
    /// Fences, and those of them with too many states to look at each.
    pub fences: u64,
    pub sampled: u64,
    /// States that were looked at, and that there are, at the sampled fences.
    pub sampled_states: u64,
    pub possible: f64,
}

impl Report {
    /// All states that were looked at.
    pub fn all(&self) -> u64 {
        self.states + self.second
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        let Report {
            sequences,
            states,
            second,
            fences,
            sampled,
            ..
        } = self;
        write!(
            out,
            "{sequences} sequences, {fences} fences, {states} states, {second} of a second crash; "
        )?;
        let all = fences - sampled;
        write!(
            out,
            "all states of {all} fences, {} of ",
            self.sampled_states
        )?;
        write!(out, "{:.1e} states of the other {sampled}", self.possible)
    }
}

/// A state that must not be.
#[derive(Debug)]
pub struct Violation {
    /// The operations; the crash is in the last one, or after it.
    pub sequence: Vec<Op>,
    pub what: String,
    /// States that were looked at before.
    pub states: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{:?}: {}", self.sequence, self.what)
    }
}

/// A search in progress.
#[derive(Debug)]
pub struct Search {
    fault: Option<Fault>,
    /// States of one fence.
    most: usize,
    random: Random,
    sequence: Vec<Op>,
    pub report: Report,
}

type Outcome<T> = Result<T, Box<Violation>>;

impl Search {
    pub fn new(fault: Option<Fault>, most: usize, seed: u64) -> Search {
        Search {
            fault,
            most,
            random: Random::new(seed),
            sequence: Vec::new(),
            report: Report::default(),
        }
    }

    /// All sequences of a length, each from the same world.
    pub fn sequences(&mut self, world: &World, ops: &[Op], length: usize) -> Outcome<()> {
        for op in ops {
            let mut next = world.clone();
            let done = self.within(op, |search| match length {
                1 => search.step(&mut next, op),
                _ => Ok(next.run(op)),
            })?;
            if !done {
                continue;
            }
            match length {
                1 => self.report.sequences += 1,
                _ => self.within(op, |search| search.sequences(&next, ops, length - 1))?,
            }
        }
        Ok(())
    }

    /// A sequence with a crash at each point.
    pub fn walk(&mut self, world: &mut World, ops: impl Iterator<Item = Op>) -> Outcome<()> {
        self.sequence.clear();
        for op in ops {
            let mut next = world.clone();
            self.sequence.push(op);
            match self.step(&mut next, &op)? {
                true => *world = next,
                false => drop(self.sequence.pop()),
            }
        }
        self.report.sequences += 1;
        Ok(())
    }

    fn within<T>(&mut self, op: &Op, act: impl FnOnce(&mut Search) -> Outcome<T>) -> Outcome<T> {
        self.sequence.push(*op);
        let result = act(self);
        self.sequence.pop();
        result
    }

    /// Performs an operation, and crashes at each point of it; whether it succeeded.
    fn step(&mut self, world: &mut World, op: &Op) -> Outcome<bool> {
        let Some(Step { before, events }) = world.perform(op) else {
            return Ok(false);
        };
        let World {
            fs,
            durable,
            lines,
            model,
            ..
        } = world;
        let running = Allowed {
            before: &before,
            after: model,
            gradual: op.is_gradual(),
        };
        for event in &events {
            if *event == Event::Fence {
                self.crashes(durable, lines, &running)?;
            }
            lines.follow(event, durable);
        }
        let done = Allowed {
            before: model,
            after: model,
            gradual: false,
        };
        self.crashes(durable, lines, &done)?;
        durable.commit();
        self.free_pages(fs)?;
        Ok(true)
    }

    /// All states of a point.
    fn crashes(&mut self, durable: &mut Trace, lines: &Lines, allowed: &Allowed) -> Outcome<()> {
        let (choices, coverage) = lines.choices(self.most, &mut self.random);
        self.report.fences += 1;
        if let Coverage::Sampled(possible) = coverage {
            self.report.sampled += 1;
            self.report.sampled_states += choices.len() as u64;
            self.report.possible += possible;
        }
        let mark = durable.mark();
        for choice in choices {
            lines.apply(&choice, durable);
            self.state(durable, allowed)?;
            durable.rewind(mark);
        }
        Ok(())
    }

    /// One state: it is recovered and judged, and its recovery is interrupted.
    fn state(&mut self, durable: &mut Trace, allowed: &Allowed) -> Outcome<()> {
        self.report.states += 1;
        let mark = durable.mark();
        let found = self.recovered(durable)?;
        judge(&found, allowed).map_err(|what| self.violation(what))?;
        let events = std::mem::take(&mut durable.events);
        if events.is_empty() {
            return Ok(());
        }
        durable.rewind(mark);
        let mut lines = Lines::default();
        for event in &events {
            if *event == Event::Fence {
                self.second_crash(durable, &lines, &found)?;
            }
            lines.follow(event, durable);
        }
        self.second_crash(durable, &lines, &found)
    }

    fn second_crash(&mut self, durable: &mut Trace, lines: &Lines, found: &Model) -> Outcome<()> {
        let (choices, _) = lines.choices(self.most, &mut self.random);
        let mark = durable.mark();
        for choice in choices {
            self.report.second += 1;
            lines.apply(&choice, durable);
            if self.recovered(durable)? != *found {
                return Err(self.violation("a second crash changes the outcome".to_owned()));
            }
            durable.rewind(mark);
        }
        Ok(())
    }

    /// What an image holds after recovery.
    fn recovered(&self, durable: &mut Trace) -> Outcome<Model> {
        let fail = |what: String| self.violation(what);
        let survey = recover_with(durable, self.fault).map_err(|it| fail(it.to_string()))?;
        model::read(durable, &survey).map_err(|it| fail(it.to_string()))
    }

    /// Whether the file system knows which pages are free. It may hold more: files without a name.
    fn free_pages(&self, fs: &crate::ops::Fs<Trace>) -> Outcome<()> {
        let survey = survey(fs.medium()).map_err(|it| self.violation(it.to_string()))?;
        match survey.findings.is_empty() && survey.owned != *fs.owned() {
            true => Err(self.violation("pages are lost, or free while in use".to_owned())),
            false => Ok(()),
        }
    }

    fn violation(&self, what: String) -> Box<Violation> {
        let sequence = self.sequence.clone();
        let states = self.report.all();
        Box::new(Violation {
            sequence,
            what,
            states,
        })
    }
}
