// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program that ends by itself.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;

use super::outputs::OutputChecker;
use super::runner::{Runner, sample};
use super::sample::Sample;
use super::schedule::Ran;
use super::variant::Variant;

/// Requires the same output and status of each run of a program.
#[derive(Debug)]
pub(crate) struct Program {
    checker: OutputChecker,
    /// Status of the first run, and its variant.
    first: Option<(ExitStatus, String)>,
}

impl Program {
    pub fn new() -> Result<Program> {
        Ok(Program {
            checker: OutputChecker::new()?,
            first: None,
        })
    }

    /// Runs the program once.
    pub fn run(&mut self, runner: &mut Runner, variant: &Variant, until: Duration) -> Result<Ran> {
        let directory = self.checker.directory();
        let (waited, _) = runner.run(variant, until, &directory, |run| run.wait())?;
        waited.and_then(|outcome| {
            self.check_status(variant, outcome.status)?;
            runner.warmer.saw(outcome.max_rss);
            let (output, difference) = self.checker.take()?;
            Ok(Ran::Done(Sample {
                output: Some(output),
                difference,
                ..sample(&outcome)
            }))
        })
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
