// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a server and drives a load against it.
//!
//! Each run starts a new server, waits until it is ready, drives the workload (or waits for a
//! window of time), and ends the server. The compared quantity is the workload's time, the number
//! that it prints, or, for a window, the server's CPU time. A server's status and output are not
//! compared.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use toll_act::error::UserError;
use toll_act::signals;
use toll_act::target::{Child, Launch, Outcome};
use toll_observe::observer::Observer;

use super::metric::Metric;
use super::runner::{Clock, Progress, Variants, Waited, code, sample, supervise};
use super::sample::{Resource, Sample};
use super::schedule::{Executor, Ran};
use super::variant::Variant;
use super::warm::Warmer;

/// Time between the start and the load of a server without `--ready`.
const SETTLE: Duration = Duration::from_secs(1);
/// Time between two attempts of `--ready`.
const RETRY: Duration = Duration::from_millis(100);
/// How long a server may take to end after the request.
const GRACE: Duration = Duration::from_secs(10);

/// The actions on a server in each run.
#[derive(Debug, Clone, Default)]
pub struct Load {
    pub workload: Option<String>,
    pub ready: Option<String>,
    pub window: Option<Duration>,
    pub metric: Option<Metric>,
}

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
        let Some(metric) = &self.load.metric else {
            return Ok(None);
        };
        let read = |name: &str| read_lossy(&self.directory.path().join("workload").join(name));
        let (value, resource) = metric.find(&(read("stdout") + &read("stderr")))?;
        self.resource = resource;
        Ok(Some(value))
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
        let variants = std::mem::replace(&mut self.variants, Variants::new(&[]));
        let mut child = variants.launch(variant, |l| {
            l.stdin(Path::new("/dev/null")).capture(&directory)
        })?;
        let feeder = self.warmer.feed(child.pid());
        let mut acting = variants.act(variant, &child);
        let (pid, mut observer) = (child.pid(), self.observer.take());
        let mut tick = || {
            let look = observer.as_mut().map_or(Duration::MAX, |o| o.tick(pid));
            acting.tick().min(look)
        };
        let driven = self.drive(&mut child, until, &mut tick);
        self.observer = observer;
        let failure = acting.failure().map(str::to_owned);
        drop((acting, feeder));
        self.variants = variants;
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

/// The result of a workload against a running process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Timed {
    /// Its time, or the captured number as a time.
    Done(f64),
    Late,
    Interrupted,
}

/// Runs the workload once, without starting a server.
pub fn run_workload(load: &Load, limit: Duration) -> Result<Timed> {
    let workload = load.workload.as_deref().unwrap_or("true");
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let arguments = ["sh".into(), "-c".into(), OsString::from(workload)];
    let launch = Launch::new(&arguments).stdin(Path::new("/dev/null"));
    let mut child = launch.capture(directory.path()).own_group().spawn()?;
    let outcome = match supervise(&mut child, limit, || Duration::MAX)? {
        Waited::Ended(outcome) => outcome,
        Waited::Late => return Ok(Timed::Late),
        Waited::Interrupted => return Ok(Timed::Interrupted),
    };
    check_workload(workload, &outcome, directory.path())?;
    let mut sample = sample(&outcome);
    let mut resource = Resource::Elapsed;
    if let Some(metric) = &load.metric {
        let text = read_lossy(&directory.path().join("stdout"))
            + &read_lossy(&directory.path().join("stderr"));
        let (value, direction) = metric.find(&text)?;
        (sample.metric, resource) = (Some(value), direction);
    }
    Ok(Timed::Done(resource.time_of(&sample)))
}

fn check_workload(workload: &str, outcome: &Outcome, directory: &Path) -> Result<(), UserError> {
    if outcome.status.success() {
        return Ok(());
    }
    Err(UserError::Target(format!(
        "the workload `{workload}` ended with {}: {}",
        outcome.status,
        last_line(&directory.join("stderr"))
    )))
}

/// Drives the load repeatedly in its own thread while the server is recorded. It does not use
/// [`toll_act::target`], because its signal forwarding belongs to the recorder.
#[derive(Debug)]
pub struct Driver {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Driven>>,
}

/// The results of the runs of a driven workload, except the one in progress at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Driven {
    /// Whether the server was ready for any run.
    pub ready: bool,
    pub succeeded: u32,
    pub failed: u32,
}

impl Driver {
    pub fn start(load: Load) -> Driver {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = std::thread::spawn(move || drive_until(&load, &seen));
        Driver {
            over,
            thread: Some(thread),
        }
    }

    /// Stops the load.
    pub fn finish(mut self) -> Driven {
        self.end()
    }

    fn end(&mut self) -> Driven {
        self.over.store(true, Relaxed);
        let driven = self.thread.take().and_then(|thread| thread.join().ok());
        driven.unwrap_or_default()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.end();
    }
}

fn drive_until(load: &Load, over: &AtomicBool) -> Driven {
    let mut driven = Driven::default();
    match &load.ready {
        None => {
            std::thread::sleep(SETTLE);
            driven.ready = true;
        }
        Some(ready) => {
            while !over.load(Relaxed) && !driven.ready {
                driven.ready = shell_until(ready, over);
            }
        }
    }
    while let Some(workload) = load.workload.as_ref().filter(|_| !over.load(Relaxed)) {
        match shell_until(workload, over) {
            true => driven.succeeded += 1,
            false if over.load(Relaxed) => {}
            false => driven.failed += 1,
        }
        std::thread::sleep(RETRY);
    }
    driven
}

/// Runs a shell command. Kills its process group when `over` is set. Returns whether it succeeded.
fn shell_until(command: &str, over: &AtomicBool) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).process_group(0);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = shell.spawn() else {
        return false;
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if !over.load(Relaxed) => std::thread::sleep(RETRY / 4),
            _ => {
                // SAFETY: kill takes no pointer; the group's leader has not been reaped.
                unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
                let _ = child.wait();
                return false;
            }
        }
    }
}

fn read_lossy(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn last_line(path: &Path) -> String {
    let text = read_lossy(path);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or("no output").to_owned()
}
