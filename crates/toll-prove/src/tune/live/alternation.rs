// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variants "never" and "all", run in turn on one process: a change of the page size if it is
//! due, a time to settle, and a window. Before the first change there are some windows of the pages
//! as they are.
//!
//! The order is that of all comparisons: never, all, all, never, and so on. So every second change
//! of the variant needs no change of the memory.

use std::time::{Duration, Instant};

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::signals;
use toll_act::switch::{Costs, GENTLE, Limits, Selection, Switch, Unrestored};
use toll_linux::memory::Pages;
use toll_model::REGION;

use super::Live;
use super::counter::Reading;
use super::measure::{Measure, pass};
use crate::compare::runner::{Clock, Progress};
use crate::compare::schedule::{Executor, Ran};
use crate::compare::{Resource, Sample, Variant};

/// Shortest and longest window, unless one was given.
const SHORTEST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(30);
/// A window is this many times as long as the calls of a change take: there is about one change for
/// two windows, so the calls take half a percent of the time.
const PER_CHANGE: u32 = 100;
/// Expected time of a call, until the first round has measured it: a region is copied.
const CALL: Duration = Duration::from_micros(500);
/// Windows that fit into the limit in any case. The first look is after 9 rounds: 18 windows, and
/// 10 changes.
const WINDOWS: u32 = 50;
/// Counted windows before the first change. They are compared with those in huge pages, as two
/// samples: as many as the windows of a variant before the first check, if they fit into a share of
/// the time that is left.
const BEFORE: u32 = 8;
const TIME_BEFORE: f64 = 0.2;
/// Share of the time that is left in which one change has to end.
const CHANGE: f64 = 1.0 / 20.0;
/// Time after a change before a window: caches and TLB hold entries of the new pages again.
const SETTLE: Duration = Duration::from_millis(500);

/// The executor of a comparison on a running process.
pub(super) struct Alternation {
    pid: u32,
    clock: Clock,
    progress: Progress,
    switch: Switch,
    measure: Measure,
    resource: Resource,
    window: Duration,
    /// Whether the user gave the length of a window.
    is_given: bool,
    /// The time that was left before the first window.
    left: Duration,
    /// Maximum time of one change.
    change: Duration,
    selected: u64,
    before: Vec<Sample>,
    state: Option<Pages>,
    windows: u64,
    /// Regions that did not have their page size at the end of a window, summed over windows.
    astray: u64,
    expected: u64,
    stood_still: bool,
    /// Units and seconds of all windows, and of all changes.
    steady: Rate,
    changing: Rate,
}

/// Units of progress in a time.
#[derive(Debug, Clone, Copy, Default)]
struct Rate {
    units: f64,
    seconds: f64,
}

impl Rate {
    fn add(&mut self, first: &Reading, last: &Reading) {
        self.units += last.units - first.units;
        self.seconds += (last.at - first.at).as_secs_f64();
    }

    fn per_second(self) -> Option<f64> {
        (self.seconds > 0.0).then_some(self.units / self.seconds)
    }
}

/// What is known when the alternation has ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub measure: String,
    pub assumption: Option<&'static str>,
    pub window: Option<Duration>,
    /// Regions that were switched to the end.
    pub regions: u64,
    pub selected: u64,
    /// The windows before the first change.
    pub before: Vec<Sample>,
    pub costs: Costs,
    pub stops: bool,
    pub astray: f64,
    pub stood_still: bool,
    pub rate_while_changing: Option<f64>,
    pub elapsed: Duration,
    pub kept: bool,
    pub unrestored: Unrestored,
}

impl Alternation {
    pub fn new(
        live: &Live,
        selection: &Selection,
        measure: Measure,
        switch: Switch,
    ) -> Alternation {
        let left = live.within.saturating_sub(live.clock.now());
        let regions = selection.regions.len() as u64;
        Alternation {
            pid: live.request.pid,
            clock: live.clock,
            progress: live.progress.clone(),
            switch,
            resource: measure.resource(),
            measure,
            window: live
                .request
                .window
                .unwrap_or_else(|| expected(regions, left)),
            is_given: live.request.window.is_some(),
            left,
            change: left.mul_f64(CHANGE),
            selected: regions,
            before: Vec::new(),
            state: None,
            windows: 0,
            astray: 0,
            expected: 0,
            stood_still: false,
            steady: Rate::default(),
            changing: Rate::default(),
        }
    }

    /// Measures the pages as they are, before the first change; the first window warms up. They are
    /// not interleaved with the others. Fewer windows if the time is short; if the counter stands
    /// still or the user interrupts, the rounds end for the same reason.
    ///
    /// # Errors
    /// As for each window.
    pub fn look_before(&mut self, until: Duration) -> Result<()> {
        self.progress.say("windows before the first change");
        for window in 0..windows_before(self.left, self.window) {
            let Ran::Done(sample) = self.measured(until)? else {
                break;
            };
            if window > 0 {
                self.before.push(sample);
            }
        }
        Ok(())
    }

    /// Restores the page sizes from before, unless the memory stays huge.
    ///
    /// # Errors
    /// [`UserError::Target`] if the address space is gone.
    pub fn end(mut self, keep: bool, pace: f64) -> Result<Ended, UserError> {
        self.progress.say("restoring the memory");
        let elapsed = self.switch.costs().elapsed;
        let unrestored = match keep {
            true => {
                self.make(Pages::Huge)?;
                self.switch.keep();
                Unrestored::default()
            }
            false => self.switch.restore(pace)?,
        };
        let changing = self.changing.per_second().zip(self.steady.per_second());
        let timed = !matches!(self.measure, Measure::Workload(_));
        Ok(Ended {
            measure: self.measure.name(self.resource),
            assumption: self.measure.assumption(),
            window: timed.then_some(self.window),
            regions: self.switch.active(),
            selected: self.selected,
            before: std::mem::take(&mut self.before),
            stops: self.switch.stops(),
            astray: self.astray as f64 / self.expected.max(1) as f64,
            stood_still: self.stood_still,
            rate_while_changing: changing.map(|(changing, steady)| changing / steady),
            elapsed: elapsed + self.window * self.windows as u32,
            kept: keep,
            unrestored,
            costs: self.switch.costs().clone(),
        })
    }

    fn make(&mut self, size: Pages) -> Result<(), UserError> {
        let limits = Limits {
            share: GENTLE,
            time: self.change,
            stop: &|| signals::interrupted().is_some(),
        };
        self.switch.to(size, &limits)
    }

    /// Changes the page size if it is another one. Progress meanwhile is counted apart.
    fn change(&mut self, size: Pages) -> Result<Ran<()>> {
        if self.state == Some(size) {
            return Ok(Ran::Done(()));
        }
        let first = self.reading()?;
        self.make(size)?;
        self.state = Some(size);
        if let Some((first, last)) = first.zip(self.reading()?) {
            self.changing.add(&first, &last);
        }
        pass(Instant::now() + SETTLE.min(self.window))
    }

    fn reading(&mut self) -> Result<Option<Reading>> {
        let pid = self.pid;
        let Some(counter) = self.measure.counter() else {
            return Ok(None);
        };
        Ok(match counter.read(pid)? {
            Ran::Done(reading) => Some(reading),
            _ => None,
        })
    }

    fn measured(&mut self, until: Duration) -> Result<Ran<Sample>> {
        let left = until.saturating_sub(self.clock.now());
        let first = self.reading()?;
        let ran = self.measure.window(self.pid, self.window, left)?;
        let last = self.reading()?;
        if let Some((first, last)) = first.zip(last) {
            self.steady.add(&first, &last);
        }
        self.stood_still |= matches!(ran, Ran::Late) && self.measure.counter().is_some();
        ran.and_then(|(sample, resource)| {
            self.resource = resource;
            Ok(Ran::Done(sample))
        })
    }

    fn check(&mut self, size: Pages) -> Result<(), UserError> {
        self.windows += 1;
        self.astray += self.switch.astray(size)?;
        self.expected += self.switch.active();
        Ok(())
    }

    fn in_turn(&mut self, size: Pages, until: Duration) -> Result<Ran> {
        self.change(size)?
            .and_then(|()| self.measured(until))?
            .and_then(|sample| {
                self.check(size)?;
                let huge = match size {
                    Pages::Huge => self.switch.active() * REGION,
                    Pages::Small => 0,
                };
                Ok(Ran::Done(Sample {
                    huge_peak: huge,
                    huge_samples: 1,
                    ..sample
                }))
            })
    }
}

/// The number of windows before the first change, with the one that warms up. None if the time does
/// not suffice for two that count.
fn windows_before(left: Duration, window: Duration) -> u32 {
    let fit = left.mul_f64(TIME_BEFORE).div_duration_f64(window) as u32;
    if fit < 3 { 0 } else { fit.min(BEFORE + 1) }
}

/// The length of a window before a change was measured.
fn expected(regions: u64, left: Duration) -> Duration {
    window(CALL * u32::try_from(regions).unwrap_or(u32::MAX), left)
}

/// The length of a window for changes with so much time in calls, within the time that is left.
fn window(calls: Duration, left: Duration) -> Duration {
    let wanted = calls.saturating_mul(PER_CHANGE).clamp(SHORTEST, LONGEST);
    wanted.min(left / WINDOWS)
}

impl Executor for Alternation {
    fn run(&mut self, variant: &Variant, until: Duration) -> Result<Ran> {
        let size = match variant.name.as_str() {
            "all" => Pages::Huge,
            _ => Pages::Small,
        };
        let ran = self.in_turn(size, until);
        // Without the process, its counters cannot be read: that is not the reason.
        if ran.is_err() {
            self.switch.astray(size)?;
        }
        ran
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The first round warms up, and shows what a change costs. The windows of all others are alike.
    fn begin_round(&mut self, round: u32) {
        if round == 1 && !self.is_given {
            self.window = window(self.switch.costs().spent, self.left);
        }
    }

    fn resource(&self) -> Resource {
        self.resource
    }

    fn progress(&mut self, message: &str) {
        self.progress.say(message);
    }
}

#[cfg(test)]
mod tests;
