// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs guests, one for each variant, policy and round, and caches what they counted.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use toll_linux::{Root, cpu, sys};

use super::Request;
use crate::counters::{self, Counters};
use crate::error::LabError;
use crate::guest::{self, Done, Guest, Job, Latency, Outcome, Program, Qemu, Section, Status};
use crate::kernel::{Built, Variant, build};
use crate::results::{Detail, Entry, Environment, Host, Kernel};
use crate::scenario::{Policy, Scenario};
use crate::workspace::Workspace;
use crate::{files, output, profile};

/// Format version of cached runs; other versions are run again.
const RUN_CACHE_VERSION: u32 = 3;

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

/// State that all runs share.
pub(super) struct Session<'a> {
    workspace: &'a Workspace,
    request: &'a Request<'a>,
    pub(super) kernels: Vec<Built>,
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
    pub(super) fn new(workspace: &'a Workspace, request: &'a Request<'a>) -> Result<Session<'a>> {
        let scenario = request.scenario;
        let own = scenario
            .config
            .iter()
            .map(|path| workspace.root().join(path));
        let config: Vec<PathBuf> = own.chain(request.config.iter().cloned()).collect();
        let kernels = request
            .variants
            .iter()
            .map(|name| build(workspace, &Variant::find(workspace, name, &config)?))
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
            scenario.text_of_runs(),
            request.size.name(),
            &request.preset.name,
        )
            .hash(&mut hasher);
        let mut plugins = vec![guest::pmu_library(workspace)?];
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
    pub(super) fn round(
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
            adversary: false,
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
        let measure = |(name, section): (&String, &Section)| {
            let notes = outcome.notes.get(name);
            let measured = Measured {
                counters: counters::of_section(section, notes, self.request.preset),
                detail: Detail::of_section(section),
                faults: section.faults.clone(),
            };
            (name.clone(), measured)
        };
        Ok(Run {
            sections: outcome.sections.iter().map(measure).collect(),
        })
    }

    pub(super) fn environment(&self) -> Result<Environment> {
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

#[cfg(test)]
mod tests;
