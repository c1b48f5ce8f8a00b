// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is measured in a window.
//!
//! A counter of progress gives times per unit: the sample's elapsed time and CPU time are those of
//! one unit, and the verdict is on the CPU time, because a load from outside may fix the number of
//! units per second. The kernel does not tell the process's user time from its system time in the
//! resolution that a window needs: all of it is in `user`.

use std::time::{Duration, Instant};

use anyhow::Result;
use toll_act::signals;
use toll_linux::proc;

use super::command;
use super::counter::{Counter, Reading};
use super::lines::Lines;
use super::look::Look;
use super::{Progressing, Request};
use crate::compare::load::{Load, run_workload};
use crate::compare::metric::Metric;
use crate::compare::schedule::Ran;
use crate::compare::{Resource, Sample};

/// How long a counter may stand still.
const STILL: Duration = Duration::from_secs(10);
/// Fewer calls per second are not a counter of progress: a window would hold few of them.
const FEWEST_CALLS: f64 = 50.0;
/// How often Ctrl-C is checked.
const GLANCE: Duration = Duration::from_millis(20);
/// The number that a gauge prints; a unit may follow.
const NUMBER: &str = "([0-9]+(?:[.][0-9]+)?)";

/// What is measured, and how.
#[derive(Debug)]
pub(super) enum Measure {
    /// The time of the workload, or the number that it prints.
    Workload(Load),
    /// Time per unit of progress.
    Counter(Counter),
    /// A number that describes the window.
    Gauge { command: String, metric: Metric },
}

impl Measure {
    /// Chooses by the request, otherwise by what the process shows of its progress.
    ///
    /// # Errors
    /// Why nothing can be judged, as text.
    pub fn choose(request: &Request, look: &Look) -> Result<Measure, String> {
        match &request.progress {
            Some(Progressing::Counter(command)) => {
                return Ok(Measure::Counter(Counter::Command(command.clone())));
            }
            Some(Progressing::Gauge(command)) => {
                let metric = Metric::new(NUMBER).map_err(|error| error.to_string())?;
                let command = command.clone();
                return Ok(Measure::Gauge { command, metric });
            }
            Some(Progressing::Lines(path)) => {
                let unreadable = |error| format!("{}: {error}", path.display());
                let lines = Lines::open(path).map_err(unreadable)?;
                return Ok(Measure::Counter(Counter::Lines(lines)));
            }
            None => {}
        }
        if request.load.workload.is_some() {
            return Ok(Measure::Workload(request.load.clone()));
        }
        if let Some(counter) = Counter::instructions(request.pid) {
            return Ok(Measure::Counter(counter));
        }
        if look.calls >= FEWEST_CALLS {
            return Ok(Measure::Counter(Counter::Calls));
        }
        Err(format!(
            "nothing to measure by: CPU time says nothing without progress, this machine has no PMU \
             to count instructions, and the process makes {:.0} read and write calls a second. Use \
             --workload to drive a load, which is then timed, or --metric-command or --count-lines \
             to count its progress",
            look.calls
        ))
    }

    /// The compared quantity, as far as it is known before the first window.
    pub fn resource(&self) -> Resource {
        match self {
            Measure::Workload(load) => load.resource(),
            Measure::Counter(Counter::Instructions(_)) => Resource::MetricTime,
            Measure::Counter(_) => Resource::Cpu,
            Measure::Gauge { .. } => Resource::MetricRate,
        }
    }

    /// The compared quantity, in texts.
    pub fn name(&self, resource: Resource) -> String {
        match self {
            Measure::Workload(_) => format!("{} of the workload", resource.name()),
            Measure::Counter(Counter::Instructions(_)) => "CPU cycles per instruction".to_owned(),
            Measure::Counter(counter) => format!("CPU time per {}", counter.unit()),
            Measure::Gauge { .. } => "the number of the metric command".to_owned(),
        }
    }

    /// The counter of progress, if there is one.
    pub fn counter(&mut self) -> Option<&mut Counter> {
        match self {
            Measure::Counter(counter) => Some(counter),
            _ => None,
        }
    }

    /// What has to hold so that the result means what it says.
    pub fn assumption(&self) -> Option<&'static str> {
        match self {
            Measure::Workload(_) | Measure::Gauge { .. } => None,
            Measure::Counter(counter) => counter.assumption(),
        }
    }

    /// Measures one window. [`Ran::Late`] if the workload takes longer than `limit`, or a counter
    /// stands still.
    ///
    /// # Errors
    /// The workload or the metric command fails, or the process has ended.
    pub fn window(
        &mut self,
        pid: u32,
        length: Duration,
        limit: Duration,
    ) -> Result<Ran<(Sample, Resource)>> {
        match self {
            Measure::Workload(load) => workload(load, pid, limit),
            Measure::Counter(counter) => count(counter, pid, length),
            Measure::Gauge { command, metric } => gauge(command, metric, pid, length),
        }
    }
}

fn workload(load: &Load, pid: u32, limit: Duration) -> Result<Ran<(Sample, Resource)>> {
    let before = proc::cpu_time(pid)?;
    run_workload(load, limit)?.and_then(|(sample, resource)| {
        let user = (proc::cpu_time(pid)? - before).as_secs_f64();
        // What the workload itself used is another program's.
        let sample = Sample {
            user,
            sys: 0.0,
            minor_faults: 0,
            major_faults: 0,
            max_rss: 0,
            ..sample
        };
        Ok(Ran::Done((sample, resource)))
    })
}

fn count(counter: &mut Counter, pid: u32, length: Duration) -> Result<Ran<(Sample, Resource)>> {
    counter.next(pid, STILL)?.and_then(|first| {
        pass(first.at + length)?.and_then(|()| {
            counter
                .next(pid, STILL)?
                .and_then(|last| Ok(Ran::Done(per_unit(counter, &first, &last)?)))
        })
    })
}

/// The times of one unit between two readings.
fn per_unit(counter: &Counter, first: &Reading, last: &Reading) -> Result<(Sample, Resource)> {
    let units = last.units - first.units;
    if units <= 0.0 {
        let what = format!(
            "fell from {} to {}: a counter of progress grows (--gauge compares a level)",
            first.units, last.units
        );
        return Err(match counter {
            Counter::Command(command) => command::failed(command, &what),
            _ => anyhow::anyhow!("the number of its {}s {what}", counter.unit()),
        });
    }
    let cycles = last.cycles.zip(first.cycles);
    let cycles = cycles.map(|(last, first)| (last - first) / units);
    let sample = Sample {
        elapsed: (last.at - first.at).as_secs_f64() / units,
        user: (last.cpu - first.cpu).as_secs_f64() / units,
        metric: cycles,
        ..Sample::default()
    };
    let resource = match cycles {
        Some(_) => Resource::MetricTime,
        None => Resource::Cpu,
    };
    Ok((sample, resource))
}

fn gauge(
    command: &str,
    metric: &Metric,
    pid: u32,
    length: Duration,
) -> Result<Ran<(Sample, Resource)>> {
    let (begun, before) = (Instant::now(), proc::cpu_time(pid)?);
    pass(begun + length)?
        .and_then(|()| command::output_of(command))?
        .and_then(|text| {
            let (value, resource) = metric.find(&text).map_err(|_| {
                let shown: String = text.trim().chars().take(60).collect();
                command::failed(command, &format!("printed {shown:?}: no number above 0"))
            })?;
            let sample = Sample {
                elapsed: begun.elapsed().as_secs_f64(),
                user: (proc::cpu_time(pid)? - before).as_secs_f64(),
                metric: Some(value),
                ..Sample::default()
            };
            Ok(Ran::Done((sample, resource)))
        })
}

/// Waits until a moment.
pub(super) fn pass(end: Instant) -> Result<Ran<()>> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if signals::interrupted().is_some() {
            return Ok(Ran::Interrupted);
        }
        if left.is_zero() {
            return Ok(Ran::Done(()));
        }
        std::thread::sleep(left.min(GLANCE));
    }
}

#[cfg(test)]
mod tests;
