// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared by runs of programs and of servers: variants prepared once, a clock, a time limit,
//! Ctrl-C.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::ProgressBar;
use toll_act::actuate::{Acting, Actuator, Policy, Settings};
use toll_act::target::{Child, Launch, Outcome, Sampling};
use toll_act::{messages, signals};

use super::sample::Sample;
use super::variant::{Variant, Way};

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

/// A variant prepared for any number of runs.
#[derive(Debug)]
struct Ready {
    actuator: Actuator,
    command: Vec<OsString>,
    env: Vec<(String, String)>,
}

/// The variants of one command.
#[derive(Debug)]
pub(crate) struct Variants {
    command: Vec<OsString>,
    ready: BTreeMap<String, Ready>,
    /// Notes of the actuators.
    notes: Vec<String>,
    /// Why the parent could not act in a run.
    failures: BTreeMap<String, String>,
    /// Whether huge-page-backed memory is sampled in the next runs.
    sampling: Sampling,
}

impl Variants {
    pub fn new(command: &[OsString]) -> Variants {
        Variants {
            command: command.to_vec(),
            ready: BTreeMap::new(),
            notes: Vec::new(),
            failures: BTreeMap::new(),
            sampling: Sampling::Off,
        }
    }

    /// Samples huge-page-backed memory in the runs of the first round only, which is not counted.
    pub fn begin_round(&mut self, round: u32) {
        self.sampling = match round {
            0 => Sampling::Ample,
            _ => Sampling::Off,
        };
    }

    /// Prepares the variant unless it is prepared. Slow the first time; not part of a run's time.
    pub fn prepare(&mut self, variant: &Variant) -> Result<()> {
        if !self.ready.contains_key(&variant.name) {
            let ready = make_ready(&self.command, variant)?;
            let lost = ready
                .actuator
                .lost()
                .iter()
                .map(|l| format!("not found in this program: {l}"));
            self.notes
                .extend(ready.actuator.notes().iter().cloned().chain(lost));
            self.ready.insert(variant.name.clone(), ready);
        }
        Ok(())
    }

    /// Starts a run of a prepared variant; `shape` completes the launch.
    pub fn launch(&self, variant: &Variant, shape: impl Fn(Launch) -> Launch) -> Result<Child> {
        let ready = &self.ready[&variant.name];
        let mut launch = shape(Launch::new(&ready.command))
            .own_group()
            .sample_huge(self.sampling);
        for (name, value) in &ready.env {
            launch = launch.env(name, value);
        }
        ready.actuator.prepare(launch)?.spawn()
    }

    /// Starts to act on a child of [`Variants::launch`].
    pub fn act(&self, variant: &Variant, child: &Child) -> Acting {
        self.ready[&variant.name].actuator.act(child)
    }

    /// Stores why acting failed in this variant.
    pub fn note_failure(&mut self, variant: &Variant, failure: Option<String>) {
        if let Some(failure) = failure {
            self.failures.entry(variant.name.clone()).or_insert(failure);
        }
    }

    /// The notes on how the variants were acted on.
    pub fn notes(&self) -> Vec<String> {
        let failed = |(variant, why): (&String, &String)| {
            format!("variant {variant}: the parent could not act: {why}")
        };
        let mut notes = self.notes.clone();
        notes.dedup();
        notes
            .into_iter()
            .chain(self.failures.iter().map(failed))
            .collect()
    }
}

fn make_ready(command: &[OsString], variant: &Variant) -> Result<Ready> {
    let settings = Settings {
        only_advised: matches!(variant.way, Way::PlanOnly(_)),
        ..Settings::default()
    };
    let (policy, change) = match &variant.way {
        Way::None => (Policy::None, None),
        Way::Never => (Policy::Never, None),
        Way::All => (Policy::All, None),
        Way::Plan(file) | Way::PlanOnly(file) => (Policy::read(file)?, None),
        Way::Change(change) => (Policy::None, Some(change)),
    };
    Ok(Ready {
        actuator: Actuator::new(&policy, command, settings)?,
        command: change.map_or_else(|| command.to_vec(), |change| change.command(command)),
        env: change.map(|change| change.env.clone()).unwrap_or_default(),
    })
}

/// How waiting for a child ended.
#[derive(Debug)]
pub(crate) enum Waited {
    Ended(Outcome),
    /// The child was ended at the limit.
    Late,
    /// The user interrupted; the child was ended.
    Interrupted,
}

/// Waits for a child for up to `limit`, calling `tick` meanwhile.
pub(crate) fn supervise(
    child: &mut Child,
    limit: Duration,
    mut tick: impl FnMut() -> Duration,
) -> Result<Waited> {
    let end = Instant::now() + limit;
    loop {
        let after = tick().min(GLANCE);
        let left = end.saturating_duration_since(Instant::now());
        let ended = child.wait_for(after.min(left))?;
        if signals::interrupted().is_some() {
            if ended.is_none() {
                child.stop(GRACE)?;
            }
            return Ok(Waited::Interrupted);
        }
        if let Some(outcome) = ended {
            return Ok(Waited::Ended(outcome));
        }
        if left.is_zero() {
            child.stop(GRACE)?;
            return Ok(Waited::Late);
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
