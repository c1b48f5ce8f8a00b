// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs guests, one for each variant, policy and round, and caches what they counted.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
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
use crate::{files, output, parallel, profile};

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

/// A guest to run.
struct Task<'a> {
    built: &'a Built,
    policy: &'a Policy,
    round: u32,
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
        let profiles = profile::profiles(
            workspace,
            scenario,
            request.size,
            request.preset,
            request.jobs,
        )?;
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

    /// Runs every variant under every policy once in each round, the request's number of guests at
    /// a time.
    pub(super) fn rounds(
        &self,
        rounds: Range<u32>,
        of: u32,
        policies: &[&Policy],
        entries: &mut Vec<Entry>,
    ) -> Result<()> {
        let tasks: Vec<Task<'_>> = rounds
            .clone()
            .flat_map(|round| self.tasks(round, policies))
            .collect();
        let of_round = tasks.len() / rounds.len();
        let total = of as usize * of_round;
        let begun = AtomicUsize::new(rounds.start as usize * of_round);
        let bar = output::progress("");
        let runs = parallel::map(self.request.jobs, tasks.iter().collect(), |task, thread| {
            let place = begun.fetch_add(1, Ordering::Relaxed) + 1;
            bar.set_message(format!("run {place} of {total}"));
            self.run_or_cached(task, thread)
        })?;
        for (task, (run, is_cached)) in tasks.iter().zip(runs) {
            for (section, measured) in run.sections {
                let entry = entry(entries, &task.built.variant, &task.policy.name, &section);
                entry.faults.push(measured.faults);
                entry.add(measured.counters, measured.detail, is_cached);
            }
        }
        Ok(())
    }

    /// The guests of a round; each round starts with another variant.
    fn tasks<'b>(&'b self, round: u32, policies: &[&'b Policy]) -> Vec<Task<'b>> {
        let first = round as usize % self.kernels.len();
        let (before, after) = self.kernels.split_at(first);
        let task = |policy: &'b Policy| {
            let kernels = after.iter().chain(before);
            kernels
                .filter(|built| policy.is_for(&built.variant))
                .map(move |built| Task {
                    built,
                    policy,
                    round,
                })
        };
        policies.iter().flat_map(|policy| task(policy)).collect()
    }

    /// Runs one guest or loads a cached run; the flag tells which.
    fn run_or_cached(&self, task: &Task<'_>, thread: usize) -> Result<(Run, bool)> {
        let mut hasher = DefaultHasher::new();
        (self.fingerprint, &task.policy.name, task.round).hash(&mut hasher);
        files::read(&task.built.image)?.hash(&mut hasher);
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
        let outcome = self.guest(task, thread)?;
        let run = self.measured(&outcome)?;
        files::write(&kept, &serde_json::to_vec(&run)?)?;
        Ok((run, false))
    }

    fn guest(&self, task: &Task<'_>, thread: usize) -> Result<Outcome> {
        let Task {
            built,
            policy,
            round,
        } = task;
        let form = self.request.scenario.form(self.request.size);
        let mut jobs = vec![setting(policy, *round)];
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
            pmem: None,
            jobs: &jobs,
            limit: Duration::from_secs(form.within),
            preset: Some(self.request.preset),
            lines: self.request.scenario.lines,
            adversary: false,
            stores: false,
            directory: &self.directory_of(task, thread),
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

    /// The directory of a guest's console and counts; threads other than the first have their own.
    fn directory_of(&self, task: &Task<'_>, thread: usize) -> PathBuf {
        let name = format!("{}-{}", task.built.variant, task.policy.name);
        self.directory.join(match thread {
            0 => name,
            _ => format!("{name}-{thread}"),
        })
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
                cpus: parallel::cpus(),
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
