// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a server and drives a load against it.
//!
//! Each run starts a new server, waits until it is ready, drives the workload (or waits for a
//! window of time), and ends the server. The compared quantity is the workload's time, the number
//! that it prints, or, for a window, the server's CPU time. A server's status and output are not
//! compared.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use toll_act::error::{NO_DIRECTORY, UserError};
use toll_act::signals;
use toll_act::target::Outcome;

use super::last_words::last_words;
use super::load::{Load, RETRY, SETTLE, check_workload, read_lossy, shell};
use super::runner::{Runner, Running, code, sample, supervise};
use super::sample::{Resource, Sample};
use super::schedule::Ran;
use super::variant::Variant;

/// How long a server may take to end after the request.
const GRACE: Duration = Duration::from_secs(10);

/// Drives the load of a server in each of its runs.
#[derive(Debug)]
pub(crate) struct Server {
    load: Load,
    /// Output of the server, `--ready` and the workload, overwritten by each run.
    directory: TempDir,
}

/// What a load measures.
#[derive(Debug)]
struct Measured {
    elapsed: Duration,
    /// The captured number and its direction.
    metric: Option<(f64, Resource)>,
}

impl Server {
    pub fn new(load: Load) -> Result<Server> {
        let directory = tempfile::Builder::new()
            .prefix("tollfree-server-")
            .tempdir();
        let directory = directory.context(NO_DIRECTORY)?;
        for name in ["server", "ready", "workload"] {
            std::fs::create_dir(directory.path().join(name))?;
        }
        Ok(Server { load, directory })
    }

    /// Runs the server once, under its load.
    pub fn run(&self, runner: &mut Runner, variant: &Variant, until: Duration) -> Result<Ran> {
        let directory = self.output("server");
        let (driven, mut server) = runner.run(variant, until, &directory, |run| self.drive(run))?;
        let ended = server.stop(GRACE)?;
        runner.warmer.saw(ended.max_rss);
        driven.and_then(|measured| {
            if let Some((_, resource)) = measured.metric {
                runner.resource = resource;
            }
            Ok(Ran::Done(Sample {
                elapsed: measured.elapsed.as_secs_f64(),
                metric: measured.metric.map(|(value, _)| value),
                status: 0,
                ..sample(&ended)
            }))
        })
    }

    /// Waits until the server is ready, and drives the load once.
    fn drive(&self, run: &mut Running) -> Result<Ran<Measured>> {
        self.await_ready(run)?
            .and_then(|()| match &self.load.workload {
                Some(workload) => self.drive_workload(workload, run),
                None => self.drive_window(run),
            })
    }

    fn drive_window(&self, run: &mut Running) -> Result<Ran<Measured>> {
        let elapsed = self.load.window.unwrap_or(SETTLE);
        self.pass(elapsed, run)?.and_then(|()| {
            let metric = None;
            Ok(Ran::Done(Measured { elapsed, metric }))
        })
    }

    fn drive_workload(&self, workload: &str, run: &mut Running) -> Result<Ran<Measured>> {
        let directory = self.output("workload");
        self.shell(workload, &directory, run)?.and_then(|outcome| {
            check_workload(workload, &outcome, &directory, Some(run.variant))?;
            Ok(Ran::Done(Measured {
                elapsed: outcome.wall,
                metric: self.load.captured(&directory)?,
            }))
        })
    }

    /// Repeats `--ready` until it succeeds.
    fn await_ready(&self, run: &mut Running) -> Result<Ran<()>> {
        let Some(ready) = &self.load.ready else {
            return self.pass(SETTLE, run);
        };
        let directory = self.output("ready");
        loop {
            let attempt = self.shell(ready, &directory, run)?;
            if matches!(&attempt, Ran::Done(outcome) if outcome.status.success()) {
                return Ok(Ran::Done(()));
            }
            match attempt.and_then(|_| self.pass(RETRY, run))? {
                Ran::Done(()) => {}
                other => return Ok(other),
            }
        }
    }

    /// Waits while the server runs.
    fn pass(&self, time: Duration, run: &mut Running) -> Result<Ran<()>> {
        let end = run.clock.now() + time;
        loop {
            let now = run.clock.now();
            if signals::interrupted().is_some() {
                return Ok(Ran::Interrupted);
            }
            if now >= end {
                return Ok(Ran::Done(()));
            }
            if now >= run.until {
                return Ok(Ran::Late);
            }
            let after = run.duties.tick().min(RETRY).min(end - now);
            if let Some(outcome) = run.target.wait_for(after)? {
                return Err(self.gone(&outcome, run.variant).into());
            }
        }
    }

    /// Runs a shell command next to the server.
    fn shell(&self, command: &str, directory: &Path, run: &mut Running) -> Result<Ran<Outcome>> {
        let mut child = shell(command, directory)?;
        let mut ended = None;
        let waited = supervise(&mut child, run.left(), || {
            if ended.is_none() {
                ended = run.target.try_wait().ok().flatten();
            }
            run.duties.tick()
        })?;
        match (waited, ended) {
            (Ran::Interrupted, _) => Ok(Ran::Interrupted),
            (_, Some(outcome)) => Err(self.gone(&outcome, run.variant).into()),
            (waited, None) => Ok(waited),
        }
    }

    /// The directory with the output of a part of a run.
    fn output(&self, part: &str) -> PathBuf {
        self.directory.path().join(part)
    }

    fn gone(&self, outcome: &Outcome, variant: &str) -> UserError {
        UserError::Target(format!(
            "the server ended by itself with status {} before the end of the load (variant {variant}){}",
            code(outcome.status),
            last_words(&read_lossy(&self.output("server").join("stderr")))
        ))
    }
}
