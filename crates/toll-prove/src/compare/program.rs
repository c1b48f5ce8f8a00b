// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program that ends by itself.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;
use toll_act::signals;
use toll_observe::observer::Observer;

use super::input::Input;
use super::outputs::OutputChecker;
use super::runner::{Clock, Progress, Variants, Waited, sample, supervise};
use super::sample::Resource;
use super::schedule::{Executor, Ran};
use super::variant::Variant;
use super::warm::Warmer;

/// Runs one program, and requires the same output and status each time.
#[derive(Debug)]
pub struct Program {
    variants: Variants,
    input: Input,
    checker: OutputChecker,
    /// Status of the first run, and its variant.
    first: Option<(ExitStatus, String)>,
    clock: Clock,
    pub warmer: Warmer,
    pub progress: Progress,
    /// Observes the next runs, if set.
    pub observer: Option<Observer>,
    /// The quantity that is compared.
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
            variants: Variants::new(command),
            input,
            checker: OutputChecker::new()?,
            first: None,
            clock,
            warmer,
            progress,
            observer: None,
            resource: Resource::Elapsed,
        })
    }

    pub fn notes(&self) -> Vec<String> {
        self.variants.notes()
    }

    /// The file that each run reads as stdin.
    pub fn stdin(&self) -> PathBuf {
        self.input.path()
    }

    /// Returns an error, which ends the comparison, for a changed status or death by a signal.
    fn check_status(&mut self, variant: &Variant, status: ExitStatus) -> Result<(), UserError> {
        if let Some(signal) = status.signal() {
            return Err(UserError::Target(format!(
                "the program was killed by signal {signal} (variant {}){}",
                variant.name,
                self.last_words()
            )));
        }
        match &self.first {
            Some((first, name)) if *first != status => Err(UserError::Target(format!(
                "the program ended with {status} in variant {}, but with {first} before (variant {name}){}",
                variant.name,
                self.last_words()
            ))),
            Some(_) => Ok(()),
            None => {
                self.first = Some((status, variant.name.clone()));
                Ok(())
            }
        }
    }

    /// The last line that the program wrote to stderr.
    fn last_words(&self) -> String {
        let text = self.checker.text("stderr");
        match text.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("; its last message: {line}"),
            None => String::new(),
        }
    }
}

impl Executor for Program {
    fn run(&mut self, variant: &Variant, until: Duration) -> Result<Ran> {
        self.variants.prepare(variant)?;
        let (directory, stdin) = (self.checker.directory(), self.input.path());
        let clock = self.clock;
        self.warmer
            .warm(|| clock.now() >= until || signals::interrupted().is_some());
        let limit = until.saturating_sub(self.clock.now());
        let mut child = self
            .variants
            .launch(variant, |launch| launch.stdin(&stdin).capture(&directory))?;
        let pid = child.pid();
        let feeder = self.warmer.feed(pid);
        let mut acting = self.variants.act(variant, &child);
        let waited = supervise(&mut child, limit, || {
            let look = self
                .observer
                .as_mut()
                .map_or(Duration::MAX, |o| o.tick(pid));
            acting.tick().min(look)
        })?;
        let failure = acting.failure().map(str::to_owned);
        drop((acting, feeder));
        self.variants.note_failure(variant, failure);
        match waited {
            Waited::Late => Ok(Ran::Late),
            Waited::Interrupted => Ok(Ran::Interrupted),
            Waited::Ended(outcome) => {
                self.check_status(variant, outcome.status)?;
                self.warmer.saw(outcome.max_rss);
                let (output, difference) = self.checker.take()?;
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
