// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario: every variant under every policy, interleaved, for the requested number of
//! rounds.

mod session;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::error::LabError;
use crate::files;
use crate::kernel::Built;
use crate::preset::Preset;
use crate::results::{self, Entry, Results};
use crate::scenario::{Policy, Scenario, Size};
use crate::workspace::Workspace;
use session::Session;

/// A request to run a scenario.
#[derive(Debug)]
pub struct Request<'a> {
    pub scenario: &'a Scenario,
    pub size: Size,
    /// Names or paths of variants; the first is the reference.
    pub variants: &'a [String],
    /// Fragments for all variants.
    pub config: &'a [PathBuf],
    /// Policy names; empty: all of the scenario.
    pub policies: &'a [String],
    pub rounds: Rounds,
    /// Number of guests that run at a time.
    pub jobs: usize,
    pub preset: &'a Preset,
    /// Reuse runs of an earlier call with identical inputs.
    pub resumes: bool,
}

/// Number of runs of each variant and policy.
#[derive(Debug, Clone, Copy)]
pub enum Rounds {
    /// The scenario's default.
    Usual,
    Fixed(u32),
    /// Repeat until a change by this share is detectable in the judged counters.
    Showing {
        change: f64,
        most: u32,
    },
}

impl Rounds {
    /// Returns the rounds to reach, given the results of `made` rounds; at most `most`.
    fn wanted(self, usual: u32, made: u32, results: &Results) -> u32 {
        match self {
            Rounds::Usual => usual,
            Rounds::Fixed(runs) => runs,
            Rounds::Showing { change, most } => {
                // With fewer than three runs the spread is unknown.
                let needed = match results.rounds_for(change) {
                    Some((needed, _)) => needed,
                    None if made < 3 => 3,
                    None => made,
                };
                needed.min(most)
            }
        }
    }

    /// Returns the rounds to make before their results are looked at.
    fn next(self, made: u32, wanted: u32) -> u32 {
        match self {
            Rounds::Showing { .. } => made + 1,
            Rounds::Usual | Rounds::Fixed(_) => wanted,
        }
    }
}

/// Builds missing kernels and runs all rounds.
///
/// # Errors
/// Build and boot errors; [`LabError::Test`] for a job that fails, and for a guest in which no
/// section was counted.
pub fn run(workspace: &Workspace, request: &Request<'_>) -> Result<Results> {
    let policies = policies(request)?;
    let session = Session::new(workspace, request)?;
    let usual = request.scenario.form(request.size).runs;
    let mut results = Results {
        format: results::FORMAT.to_owned(),
        version: results::VERSION,
        scenario: request.scenario.name.clone(),
        form: request.size,
        preset: request.preset.name.clone(),
        environment: session.environment()?,
        judged_by: request.scenario.judged_by.clone(),
        results: Vec::new(),
        sizes: Vec::new(),
        workloads: Vec::new(),
    };
    let mut made = 0;
    loop {
        let wanted = request.rounds.wanted(usual, made, &results);
        if made >= wanted {
            break;
        }
        let until = request.rounds.next(made, wanted);
        session.rounds(made..until, wanted, &policies, &mut results.results)?;
        made = until;
    }
    sort(&mut results.results, &session.kernels, &policies);
    if let Some(policy) = &request.scenario.tail {
        results::add_tails(&mut results.results, policy);
    }
    unknown_judges(&results)?;
    if let Some(which) = &request.scenario.workloads {
        results.workloads = results::workloads(&results.results, which);
    }
    if let Some(sections) = &request.scenario.sizes {
        results.sizes = results::sizes(&results.results, sections);
    }
    let require = &request.scenario.require;
    let broken = |condition| results::broken(condition, &results);
    let broken: Vec<String> = require.iter().flat_map(broken).collect();
    match broken.is_empty() {
        true => Ok(results),
        false => {
            let name = &request.scenario.name;
            Err(LabError::Test(format!("{name}: {}", broken.join("; "))).into())
        }
    }
}

/// # Errors
/// The scenario is judged by a counter that none of its sections has.
fn unknown_judges(results: &Results) -> Result<()> {
    let is_known = |name: &String| {
        let mut entries = results.results.iter();
        entries.any(|entry| entry.counters.contains_key(name))
    };
    match results.judged_by.iter().find(|name| !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let scenario = &results.scenario;
            Err(LabError::Usage(format!("{scenario}: judged_by: {name}: no such counter")).into())
        }
    }
}

/// Returns the requested policies.
///
/// # Errors
/// [`LabError::Usage`] for a policy that the scenario does not have, or that applies to none of the
/// variants.
fn policies<'a>(request: &'a Request<'_>) -> Result<Vec<&'a Policy>> {
    let found = named_policies(request)?;
    let has_variant = |policy: &&Policy| {
        request
            .variants
            .iter()
            .any(|variant| policy.is_for(variant))
    };
    let usable: Vec<&Policy> = found.iter().copied().filter(has_variant).collect();
    let unusable = found.iter().find(|policy| !has_variant(policy));
    match unusable {
        Some(policy) if usable.is_empty() || !request.policies.is_empty() => {
            let (name, scenario) = (&policy.name, &request.scenario.name);
            let variants = policy.variants.join(", ");
            let why = format!("{name}: policy of {scenario}, only for variants {variants}");
            Err(LabError::Usage(why).into())
        }
        _ => Ok(usable),
    }
}

fn named_policies<'a>(request: &'a Request<'_>) -> Result<Vec<&'a Policy>> {
    let all = &request.scenario.policies;
    if request.policies.is_empty() {
        return Ok(all.iter().collect());
    }
    let find = |name: &String| {
        all.iter()
            .find(|policy| policy.name == *name)
            .ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|policy| policy.name.as_str()).collect();
                let scenario = &request.scenario.name;
                LabError::Usage(format!(
                    "{name}: no such policy in {scenario} (expected {})",
                    known.join(", ")
                ))
                .into()
            })
    };
    request.policies.iter().map(find).collect()
}

/// Sorts the entries by requested variants and policies, independent of the order of execution.
fn sort(entries: &mut [Entry], kernels: &[Built], policies: &[&Policy]) {
    entries.sort_by_key(|entry| {
        let policy = policies.iter().position(|it| it.name == entry.policy);
        let variant = kernels.iter().position(|it| it.variant == entry.variant);
        (entry.section.clone(), policy, variant)
    });
}

/// Writes a results file atomically.
pub fn keep(results: &Results, path: &Path) -> Result<()> {
    files::write(path, &serde_json::to_vec_pretty(results)?)
}

#[cfg(test)]
mod tests;
