// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures what lines of a plan save, as the difference between the program under the whole plan
//! and under the plan without the line.
//!
//! | file | holds |
//! |---|---|
//! | `claim` | the lines to verify, and the plan without them |
//! | `finding` | what the runs say about them |
//! | `text` | the result as text |

mod claim;
mod finding;
#[cfg(test)]
mod tests;
mod text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use tempfile::TempDir;
use toll_act::actuate::{Actuator, Policy, Settings};
use toll_act::error::{NO_DIRECTORY, UserError};
use toll_act::{files, signals, thp};
use toll_model::plan::Plan;

use crate::compare::outputs::OutputCheck;
use crate::compare::runner::{Clock, Progress};
use crate::compare::schedule::{Rules, Stopped};
use crate::compare::subject::Subject;
use crate::compare::warm::{Warmer, Warming};
use crate::compare::{Comparison, Resource, Variant, compare};
use claim::{Claim, claims};
use finding::{Verified, run_ns, verified};

/// What to verify, and how long.
#[derive(Debug)]
pub struct Request<'a> {
    /// The file with the plan.
    pub file: &'a Path,
    pub command: &'a [OsString],
    /// Number of lines, the most valuable first.
    pub lines: usize,
    /// Counted rounds, if a number was given.
    pub pairs: Option<u32>,
    pub within: Duration,
    /// Do not warm up memory before each run.
    pub cold: bool,
}

/// The measured savings of lines of a plan.
#[derive(Debug)]
pub struct Verification {
    pub comparison: Comparison,
    lines: Vec<Verified>,
}

/// The result, as `tollfree plan --verify --json` prints it.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    format: &'static str,
    version: u32,
    program: &'a str,
    /// Confidence of every interval, 0..1.
    confidence: f64,
    pairs: u32,
    stopped: Stopped,
    complete: bool,
    /// CPU time of a run under the whole plan; absent without a complete run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_ns: Option<f64>,
    warmed_bytes: u64,
    output: &'a OutputCheck,
    lines: &'a [Verified],
    notes: &'a [String],
}

/// Runs the program under the whole plan and under the plan without each of its lines.
///
/// # Errors
/// [`UserError::UnfitFile`] for a file without a plan, or one that makes nothing huge;
/// [`UserError::OtherProgram`] for a plan for another program; [`UserError::Missing`] where memory
/// that a plan omits is huge anyway; those of the runs.
pub fn verify(request: &Request) -> Result<Verification> {
    let policy = Policy::read(request.file)?;
    let Policy::Plan(plan) = &policy else {
        let detail = format!(
            "{}: a list of addresses has no predictions to verify",
            request.file.display()
        );
        return Err(UserError::UnfitFile(detail).into());
    };
    let claims = claims(plan, request.lines);
    check(request, plan, &claims)?;
    // Refuse a plan for another program before anything runs.
    Actuator::new(&policy, request.command, Settings::default())?;
    let directory = tempfile::Builder::new()
        .prefix("tollfree-")
        .tempdir()
        .context(NO_DIRECTORY)?;
    let variants = variants(request.file, plan, &claims, &directory)?;
    let _signals = signals::watch()?;
    let comparison = measure(request, &variants)?;
    let lines = verified(&claims, &comparison);
    Ok(Verification { comparison, lines })
}

impl Verification {
    /// The result as a JSON document.
    pub fn report(&self) -> Report<'_> {
        let comparison = &self.comparison;
        Report {
            format: "tollfree-verification",
            version: 1,
            program: &comparison.program,
            confidence: comparison.confidence,
            pairs: comparison.pairs,
            stopped: comparison.stopped,
            complete: comparison.complete,
            run_ns: run_ns(comparison),
            warmed_bytes: comparison.warmed_bytes,
            output: &comparison.output,
            lines: &self.lines,
            notes: &comparison.notes,
        }
    }

    /// The result as text.
    pub fn text(&self) -> String {
        text::render(&self.comparison, &self.lines)
    }
}

/// Refuses what cannot be measured.
fn check(request: &Request, plan: &Plan, claims: &[Claim]) -> Result<()> {
    if claims.is_empty() {
        let detail = format!(
            "{}: it makes nothing huge, so there is nothing to verify",
            request.file.display()
        );
        return Err(UserError::UnfitFile(detail).into());
    }
    if thp::is_always() && !plan.thp_always {
        let detail =
            "transparent huge pages are `always` here: memory that a plan omits is huge anyway";
        return Err(UserError::Missing(detail.to_owned()).into());
    }
    Ok(())
}

/// The whole plan, and the plan without each of the lines.
fn variants(
    file: &Path,
    plan: &Plan,
    claims: &[Claim],
    directory: &TempDir,
) -> Result<Vec<Variant>> {
    let mut variants = vec![Variant::plan(file)];
    for (claim, number) in claims.iter().zip(1..) {
        let path: PathBuf = directory.path().join(format!("without-{number}.toml"));
        files::write(&path, claim.removed_from(plan).to_toml()?.as_bytes())?;
        variants.push(Variant::without(number, path));
    }
    Ok(variants)
}

fn measure(request: &Request, variants: &[Variant]) -> Result<Comparison> {
    let progress = Progress::new(&format!("at most {} s", request.within.as_secs_f64()));
    let warming = Warming::of_machine(request.cold);
    let warmer = Warmer::new(warming.on);
    let mut subject = Subject::new(
        request.command,
        None,
        Clock::start(),
        progress.clone(),
        warmer,
    )?;
    subject.runner.resource = Resource::Cpu;
    let rules = Rules {
        pairs: request.pairs,
        deadline: request.within,
        each: true,
    };
    let name = request.command[0].to_string_lossy();
    let mut comparison = compare(&mut subject, &name, variants, &rules, None)?;
    comparison.notes.extend(subject.notes());
    comparison.warming = Some(warming);
    progress.end();
    Ok(comparison)
}
