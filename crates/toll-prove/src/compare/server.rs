// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a server and drives a load against it.
//!
//! Each run starts a new server, waits until it is ready, drives the workload (or waits for a
//! window of time), and ends the server. The compared quantity is the workload's time, the number
//! that it prints, or, for a window, the server's CPU time. A server's status and output are not
//! compared.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use toll_act::error::UserError;
use toll_act::signals;
use toll_act::target::{Child, Launch, Outcome};
use toll_observe::observer::Observer;

use super::load::{Load, RETRY, SETTLE, check_workload, last_line};
use super::runner::{Clock, Progress, Variants, Waited, code, sample, supervise};
use super::sample::{Resource, Sample};
use super::schedule::{Executor, Ran};
use super::variant::Variant;
use super::warm::Warmer;

/// How long a server may take to end after the request.
const GRACE: Duration = Duration::from_secs(10);

/// Runs of one server.
#[derive(Debug)]
pub struct Server {
    variants: Variants,
    load: Load,
    /// Output of the server, `--ready` and the workload, overwritten by each run.
    directory: TempDir,
    /// The compared quantity; the direction of a metric is known after its first value.
    resource: Resource,
    clock: Clock,
    pub warmer: Warmer,
    pub progress: Progress,
    /// Observes the next runs, if set.
    pub observer: Option<Observer>,
}

/// How one part of a run ended.
enum Part<T> {
    Done(T),
    Late,
    Interrupted,
}

impl Server {
    pub fn new(
        command: &[OsString],
        load: Load,
        clock: Clock,
        progress: Progress,
        warmer: Warmer,
    ) -> Result<Server> {
        let directory = tempfile::Builder::new()
            .prefix("tollfree-server-")
            .tempdir();
        let directory = directory.context("no temporary directory")?;
        for name in ["server", "ready", "workload"] {
            std::fs::create_dir(directory.path().join(name))?;
        }
        let resource = match (&load.workload, &load.metric) {
            (None, _) => Resource::Cpu,
            (Some(_), None) => Resource::Elapsed,
            (Some(_), Some(_)) => Resource::MetricRate,
        };
        Ok(Server {
            variants: Variants::new(command),
            load,
            directory,
            resource,
            clock,
            warmer,
            progress,
            observer: None,
        })
    }

    pub fn notes(&self) -> Vec<String> {
        self.variants.notes()
    }

    fn left(&self, until: Duration) -> Duration {
        until.saturating_sub(self.clock.now())
    }

    /// Repeats `--ready` until it succeeds.
    fn await_ready(
        &self,
        server: &mut Child,
        until: Duration,
        tick: &mut dyn FnMut() -> Duration,
    ) -> Result<Part<()>> {
        let Some(ready) = &self.load.ready else {
            return self.pass(server, SETTLE, until, tick);
        };
        loop {
            match self.shell(ready, "ready", server, until, tick)? {
                Part::Done(outcome) if outcome.status.success() => return Ok(Part::Done(())),
                Part::Done(_) => {}
                Part::Late => return Ok(Part::Late),
                Part::Interrupted => return Ok(Part::Interrupted),
            }
            match self.pass(server, RETRY, until, tick)? {
                Part::Done(()) => {}
                other => return Ok(other),
            }
        }
    }

    /// Waits while the server runs.
    fn pass(
        &self,
        server: &mut Child,
        time: Duration,
        until: Duration,
        tick: &mut dyn FnMut() -> Duration,
    ) -> Result<Part<()>> {
        let end = self.clock.now() + time;
        loop {
            let now = self.clock.now();
            if signals::interrupted().is_some() {
                return Ok(Part::Interrupted);
            }
            if now >= end {
                return Ok(Part::Done(()));
            }
            if now >= until {
                return Ok(Part::Late);
            }
            let after = tick().min(RETRY).min(end - now);
            if let Some(outcome) = server.wait_for(after)? {
                return Err(self.gone(&outcome).into());
            }
        }
    }

    /// Runs a shell command next to the server.
    fn shell(
        &self,
        command: &str,
        name: &str,
        server: &mut Child,
        until: Duration,
        tick: &mut dyn FnMut() -> Duration,
    ) -> Result<Part<Outcome>> {
        let arguments = ["sh".into(), "-c".into(), OsString::from(command)];
        let directory = self.directory.path().join(name);
        let launch = Launch::new(&arguments).stdin(Path::new("/dev/null"));
        let mut child = launch.capture(&directory).own_group().spawn()?;
        let mut ended = None;
        let waited = supervise(&mut child, self.left(until), || {
            if ended.is_none() {
                ended = server.try_wait().ok().flatten();
            }
            tick()
        })?;
        match (waited, ended) {
            (Waited::Interrupted, _) => Ok(Part::Interrupted),
            (_, Some(outcome)) => Err(self.gone(&outcome).into()),
            (Waited::Late, None) => Ok(Part::Late),
            (Waited::Ended(outcome), None) => Ok(Part::Done(outcome)),
        }
    }

    /// The run from readiness to the end of the load.
    fn drive(
        &mut self,
        server: &mut Child,
        until: Duration,
        tick: &mut dyn FnMut() -> Duration,
    ) -> Result<Part<Sample>> {
        match self.await_ready(server, until, tick)? {
            Part::Done(()) => {}
            Part::Late => return Ok(Part::Late),
            Part::Interrupted => return Ok(Part::Interrupted),
        }
        let Some(workload) = self.load.workload.clone() else {
            let window = self.load.window.unwrap_or(SETTLE);
            return Ok(match self.pass(server, window, until, tick)? {
                Part::Done(()) => Part::Done(Sample {
                    elapsed: window.as_secs_f64(),
                    ..Sample::default()
                }),
                Part::Late => Part::Late,
                Part::Interrupted => Part::Interrupted,
            });
        };
        let outcome = match self.shell(&workload, "workload", server, until, tick)? {
            Part::Done(outcome) => outcome,
            Part::Late => return Ok(Part::Late),
            Part::Interrupted => return Ok(Part::Interrupted),
        };
        check_workload(&workload, &outcome, &self.directory.path().join("workload"))?;
        let metric = self.captured()?;
        Ok(Part::Done(Sample {
            elapsed: outcome.wall.as_secs_f64(),
            metric,
            ..Sample::default()
        }))
    }

    fn captured(&mut self) -> Result<Option<f64>> {
        let found = self
            .load
            .captured(&self.directory.path().join("workload"))?;
        Ok(found.map(|(value, resource)| {
            self.resource = resource;
            value
        }))
    }

    fn gone(&self, outcome: &Outcome) -> UserError {
        UserError::Target(format!(
            "the server ended by itself with status {} before the end of the load: {}",
            code(outcome.status),
            last_line(&self.directory.path().join("server/stderr"))
        ))
    }
}

impl Executor for Server {
    fn run(&mut self, variant: &Variant, until: Duration) -> Result<Ran> {
        self.variants.prepare(variant)?;
        let directory = self.directory.path().join("server");
        let clock = self.clock;
        self.warmer
            .warm(|| clock.now() >= until || signals::interrupted().is_some());
        let mut child = self.variants.launch(variant, |l| {
            l.stdin(Path::new("/dev/null")).capture(&directory)
        })?;
        let feeder = self.warmer.feed(child.pid());
        let mut acting = self.variants.act(variant, &child);
        let (pid, mut observer) = (child.pid(), self.observer.take());
        let mut tick = || {
            let look = observer.as_mut().map_or(Duration::MAX, |o| o.tick(pid));
            acting.tick().min(look)
        };
        let driven = self.drive(&mut child, until, &mut tick);
        self.observer = observer;
        let failure = acting.failure().map(str::to_owned);
        drop((acting, feeder));
        self.variants.note_failure(variant, failure);
        let driven = driven?;
        let ended = child.stop(GRACE)?;
        self.warmer.saw(ended.max_rss);
        Ok(match driven {
            Part::Late => Ran::Late,
            Part::Interrupted => Ran::Interrupted,
            Part::Done(own) => Ran::Done(Sample {
                elapsed: own.elapsed,
                metric: own.metric,
                status: 0,
                ..sample(&ended)
            }),
        })
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn begin_round(&mut self, round: u32) {
        self.variants.begin_round(round);
    }

    fn resource(&self) -> Resource {
        self.resource
    }

    fn warmed(&self) -> u64 {
        self.warmer.warmed()
    }

    fn progress(&mut self, message: &str) {
        self.progress.say(message);
    }
}
