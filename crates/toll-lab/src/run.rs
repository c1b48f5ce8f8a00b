// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a scenario: every variant under every policy, interleaved, for the requested number of
//! rounds.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use toll_linux::{Root, cpu, sys};

use crate::error::LabError;
use crate::guest::{self, Done, Guest, Job, Latency, Outcome, Program, Qemu, Status};
use crate::kernel::{Built, Variant, build};
use crate::preset::Preset;
use crate::results::{self, Counters, Detail, Entry, Environment, Host, Kernel, Results};
use crate::scenario::{Policy, Scenario, Size};
use crate::workspace::Workspace;
use crate::{files, output, profile};

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
}

/// Format version of cached runs; other versions are run again.
const RUN_CACHE_VERSION: u32 = 2;

/// Output of one guest, by section.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    sections: BTreeMap<String, Measured>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Measured {
    counters: Counters,
    detail: Detail,
    faults: Latency,
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
        session.round(made, wanted, &policies, &mut results.results)?;
        made += 1;
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
    let broken: Vec<String> = require.iter().flat_map(|it| it.broken(&results)).collect();
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

fn entry<'a>(
    entries: &'a mut Vec<Entry>,
    variant: &str,
    policy: &str,
    section: &str,
) -> &'a mut Entry {
    let is = |entry: &Entry| {
        entry.variant == variant && entry.policy == policy && entry.section == section
    };
    let place = entries.iter().position(is).unwrap_or_else(|| {
        entries.push(Entry::new(variant, policy, section));
        entries.len() - 1
    });
    &mut entries[place]
}

/// Sorts the entries by requested variants and policies, independent of the order of execution.
fn sort(entries: &mut [Entry], kernels: &[Built], policies: &[&Policy]) {
    entries.sort_by_key(|entry| {
        let policy = policies.iter().position(|it| it.name == entry.policy);
        let variant = kernels.iter().position(|it| it.variant == entry.variant);
        (entry.section.clone(), policy, variant)
    });
}

/// State that all runs share.
struct Session<'a> {
    workspace: &'a Workspace,
    request: &'a Request<'a>,
    kernels: Vec<Built>,
    programs: Vec<Program>,
    /// Additional state of policies with profiles.
    profiles: Vec<Program>,
    disks: Vec<PathBuf>,
    /// Directory of consoles and cached runs.
    directory: PathBuf,
    fingerprint: u64,
    _lock: fs::File,
}

impl<'a> Session<'a> {
    fn new(workspace: &'a Workspace, request: &'a Request<'a>) -> Result<Session<'a>> {
        let scenario = request.scenario;
        let kernels = request
            .variants
            .iter()
            .map(|name| build(workspace, &Variant::find(workspace, name, request.config)?))
            .collect::<Result<Vec<_>>>()?;
        let programs = programs(workspace, scenario)?;
        let profiles = profile::profiles(workspace, scenario, request.size, request.preset)?;
        let disks = scenario
            .disks(request.size)
            .iter()
            .map(|disk| disk.made(workspace))
            .collect::<Result<Vec<_>>>()?;
        let name = format!("{}-{}", scenario.name, request.size.name());
        let directory = workspace.cache.join("runs").join(name);
        let lock = files::lock(&files::with_suffix(&directory, ".lock"))?;
        let mut hasher = DefaultHasher::new();
        (
            RUN_CACHE_VERSION,
            &scenario.text,
            request.size.name(),
            &request.preset.name,
        )
            .hash(&mut hasher);
        let mut plugins = vec![request.preset.library(workspace)?];
        if scenario.lines {
            plugins.push(guest::lines_library(workspace)?);
        }
        let all = programs
            .iter()
            .chain(&profiles)
            .map(|program| &program.host);
        let contents = all.chain(&plugins);
        for path in contents {
            files::read(path)?.hash(&mut hasher);
        }
        disks.hash(&mut hasher);
        Ok(Session {
            workspace,
            request,
            kernels,
            programs,
            profiles,
            disks,
            directory,
            fingerprint: hasher.finish(),
            _lock: lock,
        })
    }

    /// Runs every variant under every policy once; each round starts with another variant.
    fn round(
        &self,
        round: u32,
        rounds: u32,
        policies: &[&Policy],
        entries: &mut Vec<Entry>,
    ) -> Result<()> {
        let pairs = |policy: &&&Policy| {
            let kernels = self.kernels.iter();
            kernels
                .filter(|built| policy.is_for(&built.variant))
                .count()
        };
        let of_round: usize = policies.iter().map(|policy| pairs(&policy)).sum();
        let total = rounds as usize * of_round;
        let mut place = round as usize * of_round;
        for policy in policies {
            for number in 0..self.kernels.len() {
                let built = &self.kernels[(number + round as usize) % self.kernels.len()];
                if !policy.is_for(&built.variant) {
                    continue;
                }
                place += 1;
                let (run, is_cached) = self.run_or_cached(built, policy, round, (place, total))?;
                for (section, measured) in run.sections {
                    let entry = entry(entries, &built.variant, &policy.name, &section);
                    entry.faults.push(measured.faults);
                    entry.add(measured.counters, measured.detail, is_cached);
                }
            }
        }
        Ok(())
    }

    /// Runs one guest or loads a cached run; the flag tells which.
    fn run_or_cached(
        &self,
        built: &Built,
        policy: &Policy,
        round: u32,
        place: (usize, usize),
    ) -> Result<(Run, bool)> {
        let mut hasher = DefaultHasher::new();
        (self.fingerprint, &policy.name, round).hash(&mut hasher);
        files::read(&built.image)?.hash(&mut hasher);
        let kept = self
            .directory
            .join(format!("kept-{:016x}.json", hasher.finish()));
        if self.request.resumes {
            if let Some(text) = files::read(&kept)? {
                let run = serde_json::from_slice(&text)
                    .with_context(|| format!("{}: is not a cached run", kept.display()))?;
                return Ok((run, true));
            }
        }
        let _bar = output::progress(&format!("run {} of {}", place.0, place.1));
        let outcome = self.guest(built, policy, round)?;
        let run = self.measured(&outcome)?;
        files::write(&kept, &serde_json::to_vec(&run)?)?;
        Ok((run, false))
    }

    fn guest(&self, built: &Built, policy: &Policy, round: u32) -> Result<Outcome> {
        let form = self.request.scenario.form(self.request.size);
        let mut jobs = vec![setting(policy, round)];
        jobs.extend(
            form.jobs
                .iter()
                .map(|job| Job::shell(&job.name, &job.line())),
        );
        let append: Vec<&str> = policy.kernel.iter().map(String::as_str).collect();
        let outcome = Guest {
            image: &built.image,
            machine: self.request.scenario.machine(self.request.size),
            append: &append,
            programs: &self.programs_of(policy),
            disks: &self.disks,
            jobs: &jobs,
            limit: Duration::from_secs(form.within),
            preset: Some(self.request.preset),
            lines: self.request.scenario.lines,
            directory: &self
                .directory
                .join(format!("{}-{}", built.variant, policy.name)),
        }
        .run(self.workspace)?;
        let is_bad = |done: &&Done| done.status != Status::Exit(0);
        if let Some(bad) = outcome.done.iter().find(is_bad) {
            let (scenario, variant) = (&self.request.scenario.name, &built.variant);
            return Err(LabError::Test(format!(
                "{scenario}, {variant}, {}: job {} failed ({}): {}",
                policy.name,
                bad.name,
                bad.status,
                files::last_lines(&bad.err, 5)
            ))
            .into());
        }
        Ok(outcome)
    }

    /// The guest's inputs include only whether the policy has profiles.
    fn programs_of(&self, policy: &Policy) -> Vec<Program> {
        let profiles = self.profiles.iter().filter(|_| policy.profiles);
        self.programs.iter().chain(profiles).cloned().collect()
    }

    fn measured(&self, outcome: &Outcome) -> Result<Run> {
        let scenario = &self.request.scenario.name;
        if outcome.sections.is_empty() {
            let console = outcome.console.display();
            let why = format!("{scenario}: no section was counted (console {console})");
            return Err(LabError::Test(why).into());
        }
        let measure = |(name, section): (&String, &crate::guest::Section)| {
            let notes = outcome.notes.get(name);
            let measured = Measured {
                counters: results::of_section(section, notes, self.request.preset),
                detail: Detail::of_section(section),
                faults: section.faults.clone(),
            };
            (name.clone(), measured)
        };
        Ok(Run {
            sections: outcome.sections.iter().map(measure).collect(),
        })
    }

    fn environment(&self) -> Result<Environment> {
        let root = Root::system();
        let kernel = |built: &Built| Kernel {
            variant: built.variant.clone(),
            release: built.release.clone(),
            source: built.source.clone(),
            patches: built.patches.clone(),
        };
        Ok(Environment {
            date: today()?,
            host: Host {
                cpu: cpu::model(&root),
                cpus: available_parallelism().map_or(1, usize::from),
                memory_mib: sys::meminfo(&root).map_or(0, |memory| memory.total >> 20),
                kernel: sys::kernel_release(&root),
            },
            qemu: Qemu::find(self.workspace)?.version,
            machine: self.request.scenario.machine(self.request.size),
            first_touch: self.request.scenario.first_touch.clone(),
            fingerprint: format!("{:016x}", self.fingerprint),
            kernels: self.kernels.iter().map(kernel).collect(),
        })
    }
}

/// Collects the files of a scenario's guests: a shell, the named programs, and their libraries.
fn programs(workspace: &Workspace, scenario: &Scenario) -> Result<Vec<Program>> {
    let mut found = Program::installed("busybox")?;
    let with = (!scenario.profiles.is_empty()).then_some("with");
    for name in ["init", "section"]
        .into_iter()
        .chain(with)
        .chain(scenario.guest.iter().map(String::as_str))
    {
        found.push(Program::compiled(workspace, name)?);
    }
    for name in &scenario.commands {
        found.extend(Program::installed(name)?);
    }
    Ok(found)
}

/// Creates the job that applies a policy to the guest's kernel and writes the round number. Jobs
/// can read it to vary between rounds when equal runs would give equal counts.
fn setting(policy: &Policy, round: u32) -> Job {
    let write = |(path, value): (&String, &String)| format!("echo '{value}' > '{path}'");
    let mut writes: Vec<String> = policy.set.iter().map(write).collect();
    writes.push(format!("echo {round} > {ROUND}"));
    Job::shell("policy", &writes.join(" && "))
}

/// File in the guest with the round number, from 0.
const ROUND: &str = "/tmp/round";

/// Returns the date, UTC.
fn today() -> Result<String> {
    let output = Command::new("date").args(["-u", "+%F"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Writes a results file atomically.
pub fn keep(results: &Results, path: &Path) -> Result<()> {
    files::write(path, &serde_json::to_vec_pretty(results)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_written_before_anything_runs() {
        let policy = Policy {
            name: "never".to_owned(),
            variants: Vec::new(),
            profiles: true,
            kernel: Vec::new(),
            set: [("/sys/x".to_owned(), "never".to_owned())].into(),
        };
        assert_eq!(
            setting(&policy, 0).command[3],
            "echo 'never' > '/sys/x' && echo 0 > /tmp/round"
        );
        let nothing = Policy {
            set: BTreeMap::new(),
            ..policy
        };
        assert_eq!(setting(&nothing, 2).command[3], "echo 2 > /tmp/round");
    }

    #[test]
    fn rounds_go_on_until_a_change_shows() {
        use crate::results::tests::example;
        let showing = Rounds::Showing {
            change: 0.03,
            most: 30,
        };
        // The spread is known from three runs on; an interval needs six.
        assert_eq!(showing.wanted(1, 0, &example(&[], &[])), 3);
        assert_eq!(
            showing.wanted(1, 3, &example(&[100.0, 101.0, 99.0], &[])),
            6
        );
        let spread = example(&[100.0, 110.0, 90.0], &[]);
        assert_eq!(showing.wanted(1, 3, &spread), 30);
        // Without a counter there is nothing to wait for.
        let zeros = example(&[0.0; 3], &[]);
        assert_eq!(showing.wanted(1, 3, &zeros), 6);
        assert_eq!(Rounds::Usual.wanted(2, 0, &spread), 2);
        assert_eq!(Rounds::Fixed(5).wanted(2, 0, &spread), 5);
    }

    #[test]
    fn a_day_has_ten_letters() {
        assert_eq!(today().unwrap().len(), 10);
    }
}
