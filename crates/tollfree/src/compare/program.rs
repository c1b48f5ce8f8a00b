// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program that ends by itself.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;

use super::arm::Arm;
use super::input::Input;
use super::observe::Observer;
use super::outputs::Gallery;
use super::runner::{Arms, Clock, Progress, Waited, sample, supervise};
use super::sample::Resource;
use super::schedule::{Executor, Ran};
use super::warm::Warmer;
use crate::error::UserError;
use crate::signals;

/// Runs of one program, whose output and status must be the same each time.
#[derive(Debug)]
pub struct Program {
    arms: Arms,
    input: Input,
    gallery: Gallery,
    /// Status of the first run, and its arm.
    first: Option<(ExitStatus, String)>,
    clock: Clock,
    pub warmer: Warmer,
    pub progress: Progress,
    /// Watches the next runs, if there is one.
    pub observer: Option<Observer>,
    /// What the arms are compared by.
    pub resource: Resource,
}

impl Program {
    pub fn new(
        command: &[OsString],
        input: Input,
        clock: Clock,
        progress: Progress,
        warmer: Warmer,
    ) -> Result<Program> {
        Ok(Program {
            arms: Arms::new(command),
            input,
            gallery: Gallery::new()?,
            first: None,
            clock,
            warmer,
            progress,
            observer: None,
            resource: Resource::Elapsed,
        })
    }

    pub fn notes(&self) -> Vec<String> {
        self.arms.notes()
    }

    /// The file that each run reads on stdin.
    pub fn stdin(&self) -> PathBuf {
        self.input.path()
    }

    /// A status other than before, or death by a signal, ends a comparison at once.
    fn check_status(&mut self, arm: &Arm, status: ExitStatus) -> Result<(), UserError> {
        if let Some(signal) = status.signal() {
            return Err(UserError::Target(format!(
                "the program was killed by signal {signal} (arm {}){}",
                arm.name,
                self.last_words()
            )));
        }
        match &self.first {
            Some((first, name)) if *first != status => Err(UserError::Target(format!(
                "the program ended with {status} in arm {}, but with {first} before (arm {name}){}",
                arm.name,
                self.last_words()
            ))),
            Some(_) => Ok(()),
            None => {
                self.first = Some((status, arm.name.clone()));
                Ok(())
            }
        }
    }

    /// The last line that the program wrote to stderr.
    fn last_words(&self) -> String {
        let text = self.gallery.text("stderr");
        match text.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("; it said: {line}"),
            None => String::new(),
        }
    }
}

impl Executor for Program {
    fn run(&mut self, arm: &Arm, until: Duration) -> Result<Ran> {
        self.arms.prepare(arm)?;
        let (folder, stdin) = (self.gallery.folder(), self.input.path());
        let clock = self.clock;
        self.warmer
            .warm(|| clock.now() >= until || signals::interrupted().is_some());
        let limit = until.saturating_sub(self.clock.now());
        let mut child = self
            .arms
            .launch(arm, |launch| launch.stdin(&stdin).capture(&folder))?;
        let pid = child.pid();
        let feeder = self.warmer.feed(pid);
        let mut acting = self.arms.act(arm, &child);
        let waited = supervise(&mut child, limit, || {
            let look = self
                .observer
                .as_mut()
                .map_or(Duration::MAX, |o| o.tick(pid));
            acting.tick().min(look)
        })?;
        let failure = acting.failure().map(str::to_owned);
        drop((acting, feeder));
        self.arms.note_failure(arm, failure);
        match waited {
            Waited::Late => Ok(Ran::Late),
            Waited::Interrupted => Ok(Ran::Interrupted),
            Waited::Ended(outcome) => {
                self.check_status(arm, outcome.status)?;
                self.warmer.saw(outcome.max_rss);
                let (output, difference) = self.gallery.take()?;
                let mut sample = sample(&outcome);
                (sample.output, sample.difference) = (Some(output), difference);
                Ok(Ran::Done(sample))
            }
        }
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn begin_round(&mut self, round: u32) {
        self.arms.begin_round(round);
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
