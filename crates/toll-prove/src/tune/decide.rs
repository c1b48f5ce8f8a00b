// SPDX-License-Identifier: MIT OR Apache-2.0
//! The five steps and their early ends. Access to the machine is behind [`Experiment`].
//!
//! | file | holds |
//! |---|---|
//! | `run` | the state of a tune, its use of time, and its end |
//! | `steps` | the five steps |
//! | `variants` | the variants to run, and their references |
//! | `measure` | runs variants |
//! | `judge` | the conclusions from the comparisons, and the advice |
//! | `words` | numbers and reasons as text |
//! | `narrowed` | a measurement as evidence for the model |

mod judge;
mod measure;
mod narrowed;
mod run;
mod steps;
#[cfg(test)]
pub(crate) mod tests;
mod variants;
mod words;

use std::time::Duration;

use anyhow::Result;

use super::budget::Spending;
use super::experiment::Experiment;
use super::findings::Results;
use run::Run;

/// Runs the steps until one of them ends the tune. The results are complete except after an error.
pub fn tune(experiment: &mut dyn Experiment, program: &str, within: Duration) -> Result<Results> {
    let results = Results::new(program, within.as_secs_f64());
    let mut run = Run::new(experiment, within, results, Spending::default());
    run.steps()?;
    Ok(run.finish())
}

/// Continues the last comparison of an earlier tune. Its `results` are complete except for what
/// more runs of the same variants can show.
///
/// # Errors
/// [`toll_act::error::UserError::UnfitFile`] if there is no such comparison, or if one of its
/// variants can no longer be run.
pub fn resume(
    experiment: &mut dyn Experiment,
    results: Results,
    within: Duration,
) -> Result<Results> {
    let earlier = results.findings.seconds;
    let allowed = results.findings.within_seconds;
    let spending = Spending::after(results.findings.spent.clone());
    let mut run = Run::new(experiment, within, results, spending);
    run.go_on()?;
    let mut results = run.finish();
    results.findings.seconds += earlier;
    results.findings.within_seconds = allowed + within.as_secs_f64();
    Ok(results)
}
