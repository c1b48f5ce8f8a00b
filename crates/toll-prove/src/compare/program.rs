// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program that ends by itself.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Result;
use toll_act::error::UserError;

use super::last_words::last_words;
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

    /// Returns an error, which ends the comparison, for a changed status or death by a signal; of two
    /// commands, for any failure.
    fn check_status(&mut self, variant: &Variant, status: ExitStatus) -> Result<(), UserError> {
        match self.complaint(variant, status) {
            Some(complaint) => {
                let words = last_words(&self.checker.text("stderr"));
                Err(UserError::Target(complaint + &words))
            }
            None => {
                self.first.get_or_insert((status, variant.name.clone()));
                Ok(())
            }
        }
    }

    /// What is wrong with the status of a run.
    fn complaint(&self, variant: &Variant, status: ExitStatus) -> Option<String> {
        let name = &variant.name;
        if variant.invocation().is_some() && !status.success() {
            return Some(format!("{name} failed: {}", failure(status)));
        }
        if let Some(signal) = status.signal() {
            return Some(format!(
                "the program was killed by signal {signal} (variant {name})"
            ));
        }
        let (first, other) = self.first.as_ref()?;
        (*first != status).then(|| {
            format!("the program ended with {status} in variant {name}, but with {first} before (variant {other})")
        })
    }
}

/// A failing status; a shell adds 128 to the signal that killed its command.
fn failure(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("it was killed by signal {signal}"),
        (None, Some(code)) if (129..=192).contains(&code) => {
            format!("{status} (its command was killed by signal {})", code - 128)
        }
        _ => status.to_string(),
    }
}

#[cfg(test)]
mod tests;
