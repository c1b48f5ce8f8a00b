// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the variants of one command: what programs and servers have in common.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::ProgressBar;
use toll_act::actuate::Acting;
use toll_act::machine::MachineSetting;
use toll_act::target::{Child, Outcome};
use toll_act::{messages, signals};
use toll_observe::observer::Observer;

use super::input::Input;
use super::prepared::Variants;
use super::sample::{Resource, Sample};
use super::schedule::Ran;
use super::variant::Variant;
use super::warm::Warmer;

/// How long a target may take to end after the request.
const GRACE: Duration = Duration::from_secs(2);
/// How often the limit and Ctrl-C are checked.
const GLANCE: Duration = Duration::from_millis(200);

/// The clock of a whole tune or compare.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    pub fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Runs one command in any of its variants, one run after the other.
#[derive(Debug)]
pub(crate) struct Runner {
    pub variants: Variants,
    /// The stdin of every run.
    pub input: Input,
    pub clock: Clock,
    pub progress: Progress,
    pub warmer: Warmer,
    /// Observes the next runs, if set.
    pub observer: Option<Observer>,
    /// The compared quantity; the direction of a metric is known after its first value.
    pub resource: Resource,
}

impl Runner {
    /// Starts the variant with its output in `directory`, and lets `drive` wait for what is
    /// measured. Returns what `drive` returned, and the target, which may still run.
    pub fn run<T>(
        &mut self,
        variant: &Variant,
        until: Duration,
        directory: &Path,
        drive: impl FnOnce(&mut Running) -> Result<T>,
    ) -> Result<(T, Child)> {
        self.variants.prepare(variant)?;
        let clock = self.clock;
        self.warmer
            .warm(|| clock.now() >= until || signals::interrupted().is_some());
        let stdin = self.input.path();
        // Until the measured part has ended.
        let _held = variant.machine().map(MachineSetting::hold).transpose()?;
        let target = self
            .variants
            .launch(variant, |launch| launch.stdin(&stdin).capture(directory))?;
        let feeder = self.warmer.feed(target.pid());
        let mut running = Running {
            duties: Duties {
                pid: target.pid(),
                acting: self.variants.act(variant, &target),
                observer: self.observer.as_mut(),
            },
            variant: &variant.name,
            target,
            clock,
            until,
        };
        let driven = drive(&mut running);
        let Running { target, duties, .. } = running;
        let failure = duties.acting.failure().map(str::to_owned);
        drop((duties, feeder));
        self.variants.note_failure(variant, failure);
        Ok((driven?, target))
    }
}

/// A run in progress.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    /// The name of the variant.
    pub variant: &'a str,
    pub target: Child,
    pub duties: Duties<'a>,
    pub clock: Clock,
    /// The end of the time limit, by the clock.
    pub until: Duration,
}

impl Running<'_> {
    /// The time until the limit.
    pub fn left(&self) -> Duration {
        self.until.saturating_sub(self.clock.now())
    }

    /// Waits for the end of the target.
    pub fn wait(&mut self) -> Result<Ran<Outcome>> {
        let left = self.left();
        supervise(&mut self.target, left, || self.duties.tick())
    }
}

/// What must be done while a target runs: acting on it, and observing it.
#[derive(Debug)]
pub(crate) struct Duties<'a> {
    pid: u32,
    acting: Acting,
    observer: Option<&'a mut Observer>,
}

impl Duties<'_> {
    /// Does the work that is due. Returns the time until the next call.
    pub fn tick(&mut self) -> Duration {
        let observed = self.observer.as_mut();
        let look = observed.map_or(Duration::MAX, |observer| observer.tick(self.pid));
        self.acting.tick().min(look)
    }
}

/// Waits for a child for up to `limit`, calling `tick` meanwhile.
pub(crate) fn supervise(
    child: &mut Child,
    limit: Duration,
    mut tick: impl FnMut() -> Duration,
) -> Result<Ran<Outcome>> {
    let end = Instant::now() + limit;
    loop {
        let after = tick().min(GLANCE);
        let left = end.saturating_duration_since(Instant::now());
        let ended = child.wait_for(after.min(left))?;
        if signals::interrupted().is_some() {
            if ended.is_none() {
                child.stop(GRACE)?;
            }
            return Ok(Ran::Interrupted);
        }
        if let Some(outcome) = ended {
            return Ok(Ran::Done(outcome));
        }
        if left.is_zero() {
            child.stop(GRACE)?;
            return Ok(Ran::Late);
        }
    }
}

/// The measurements of a run.
pub(crate) fn sample(outcome: &Outcome) -> Sample {
    Sample {
        elapsed: outcome.wall.as_secs_f64(),
        user: outcome.user.as_secs_f64(),
        sys: outcome.sys.as_secs_f64(),
        minor_faults: outcome.minor_faults,
        major_faults: outcome.major_faults,
        max_rss: outcome.max_rss,
        huge_peak: outcome.huge.peak,
        huge_samples: outcome.huge.samples,
        status: code(outcome.status),
        ..Sample::default()
    }
}

/// The exit code, as a shell shows it.
pub(crate) fn code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// A progress line; hidden without a terminal.
#[derive(Debug, Clone)]
pub struct Progress {
    bar: ProgressBar,
    /// Prefix of each message: "2 of 5, upper bound".
    pub step: String,
}

impl Progress {
    pub fn new(message: &str) -> Progress {
        Progress {
            bar: messages::progress(message),
            step: String::new(),
        }
    }

    pub fn say(&self, message: &str) {
        match self.step.is_empty() {
            true => self.bar.set_message(message.to_owned()),
            false => self.bar.set_message(format!("{}: {message}", self.step)),
        }
    }

    /// Removes the line.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
