// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests under the adversarial TLB.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::Args;
use super::findings::{Counts, Findings, Report};
use super::plan::{MachineSpec, Plan, Plant, Scenario};
use super::symbols::Symbols;
use crate::cmd::selftest::programs as selftests;
use crate::error::LabError;
use crate::files;
use crate::guest::{Done, Guest, Job, Machine, Program, Status};
use crate::kernel::{Built, Variant, build};
use crate::scenario::DiskSpec;
use crate::tap::Tap;
use crate::workspace::Workspace;

/// Our programs in each guest.
const PROGRAMS: [&str; 3] = ["stale", "mmfuzz", "section"];
/// Those in guests of a patched kernel.
const PATCHED_PROGRAMS: [&str; 2] = ["persist", "dma"];
/// A bug may make a CPU of the kernel loop: the guest ends then.
const LOCKUP: &str = "softlockup_panic=1";
/// Guests that a bug is planted in, as long as none finds it.
const MOST_GUESTS: u64 = 3;
/// Exit status of a scenario that cannot run on the machine or kernel.
const NOT_POSSIBLE: Status = Status::Exit(4);
/// Size of each of the two disks, MiB.
const DISK_MIB: u64 = 320;
/// Time limit of a guest, in seconds: for booting, and for a scenario.
const BOOT: u64 = 300;
const SCENARIO: u64 = 300;
/// How long the console of a guest with a planted bug may be silent: such a bug may stop the guest.
const SILENCE: Duration = Duration::from_secs(120);
/// On its command line, the kernel announces the owners of frames.
pub(in crate::cmd) const FRAMES: &str = "toll_lab_frames";
/// The kernel's file for flushes to leave out.
const SPOIL: &str = "/sys/module/toll_lab/parameters/spoil";

/// Prints the drains of LUF's pools: a line for each class of sizes, its pages and their number.
const DRAINS: &str = "cat /sys/kernel/mm/luf/stats/pages_per_drain";

/// A kernel, and what its guests need.
pub struct Tester<'a> {
    workspace: &'a Workspace,
    plan: &'a Plan,
    args: &'a Args,
    built: Built,
    symbols: Symbols,
    programs: Vec<Program>,
    disks: [PathBuf; 2],
    directory: PathBuf,
    _lock: File,
}

/// Scenarios of a kernel without a planted bug, on one machine.
#[derive(Debug, Serialize)]
pub struct Plain {
    pub variant: String,
    pub release: String,
    pub machine: String,
    pub seconds: f64,
    #[serde(flatten)]
    pub counts: Counts,
    pub scenarios: Vec<Ran>,
    pub reports: Vec<Report>,
}

/// How a scenario ended.
#[derive(Debug, Serialize)]
pub struct Ran {
    pub name: String,
    pub ended: Ended,
    /// Its reason, if it did not pass.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub says: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    Passed,
    NotPossible,
    Failed,
}

/// A planted bug.
#[derive(Debug, Serialize)]
pub struct Planted {
    pub name: String,
    pub breaks: String,
    pub variant: String,
    pub scenario: String,
    pub caught: bool,
    /// Guests that the bug was planted in, one after the other, until one found it.
    pub guests: u64,
    /// From the begin of the scenario to the first finding.
    pub seconds: Option<f64>,
    pub reports: Vec<Report>,
    #[serde(flatten)]
    pub counts: Counts,
    /// Why it was not caught.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub says: String,
    /// Why the model cannot see it; empty if it must be caught.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unseen: String,
}

impl<'a> Tester<'a> {
    /// Builds the kernel and the programs.
    pub fn ready(
        workspace: &'a Workspace,
        plan: &'a Plan,
        variant: &str,
        args: &'a Args,
    ) -> Result<Tester<'a>> {
        let variant = Variant::find(workspace, variant, &args.config)?;
        let given = args.programs.iter().map(|path| Program::given(path));
        let given = given.collect::<Result<Vec<_>>>()?;
        let built = build(workspace, &variant)?;
        let symbols = Symbols::read(&built.config.with_file_name("System.map"))?;
        let mut programs = PROGRAMS
            .iter()
            .map(|name| Program::compiled(workspace, name))
            .collect::<Result<Vec<_>>>()?;
        for command in ["busybox", "mkfs.ext4"] {
            programs.extend(Program::installed(command)?);
        }
        programs.extend(given.into_iter().flatten());
        if built.is_patched() {
            programs.extend(selftests::compile(&built)?);
            programs.extend(Program::installed("tollfree")?);
            for name in PATCHED_PROGRAMS {
                programs.push(Program::compiled(workspace, name)?);
            }
        }
        let disk = DiskSpec {
            empty_mib: DISK_MIB,
            ..DiskSpec::default()
        };
        let disk = disk.made(workspace)?;
        let directory = workspace.cache.join("adversary").join(&built.variant);
        Ok(Tester {
            _lock: files::lock(&files::with_suffix(&directory, ".lock"))?,
            workspace,
            plan,
            args,
            built,
            symbols,
            programs,
            disks: [disk.clone(), disk],
            directory,
        })
    }

    /// Runs the scenarios that name a machine, for at least this long; `None` if there are none.
    pub fn run_on(&self, machine: &MachineSpec, share: Duration) -> Result<Option<Plain>> {
        let scenarios = self.plan.scenarios.iter();
        let scenarios: Vec<&Scenario> = scenarios
            .filter(|it| {
                it.machines.contains(&machine.name)
                    && (self.built.is_patched() || !it.patched)
                    && self.args.asks_for(it)
            })
            .collect();
        if scenarios.is_empty() {
            return Ok(None);
        }
        let began = Instant::now();
        let mut plain = Plain {
            variant: self.built.variant.clone(),
            release: self.built.release.clone(),
            machine: machine.name.clone(),
            seconds: 0.0,
            counts: Counts::default(),
            scenarios: Vec::new(),
            reports: Vec::new(),
        };
        let mut seed = self.args.seed;
        loop {
            let (done, findings) = self.boot(machine, &scenarios, seed, None)?;
            plain.add(done?, findings);
            seed += 1;
            plain.seconds = began.elapsed().as_secs_f64();
            if began.elapsed() >= share {
                return Ok(Some(plain));
            }
        }
    }

    /// Boots a guest with a bug, which its scenario must find; more guests, with other seeds, while
    /// nothing is found: threads may run in an order that has nothing old.
    pub fn run_plant(&self, plant: &Plant) -> Result<Planted> {
        let (machine, scenario) = self.plan.place(plant);
        let mut guests = 0;
        loop {
            let seed = self.args.seed + guests;
            let (done, findings) = self.boot(machine, &[scenario], seed, Some(plant))?;
            let error = done.and_then(|done| passed(&done)).err();
            guests += 1;
            let planted = Planted {
                guests,
                ..Planted::new(plant, &self.built.variant, error, findings)
            };
            if !planted.is_missed() || guests == MOST_GUESTS {
                return Ok(planted);
            }
        }
    }

    /// Runs a scenario in a guest of its own, on its first machine; it may fail.
    pub fn run_alone(&self, scenario: &Scenario, plant: Option<&Plant>) -> Result<Findings> {
        let machine = self.plan.machine(&scenario.machines[0]);
        let machine = machine.expect("a known machine");
        let (_, findings) = self.boot(machine, &[scenario], self.args.seed, plant)?;
        Ok(findings)
    }

    pub fn variant(&self) -> &str {
        &self.built.variant
    }

    /// Runs scenarios in one guest. The inner error is that of a guest that did not end well.
    fn boot(
        &self,
        machine: &MachineSpec,
        scenarios: &[&Scenario],
        seed: u64,
        plant: Option<&Plant>,
    ) -> Result<(Result<Vec<Done>>, Findings)> {
        let mut jobs = vec![Job::shell("ready", &self.ready_line())];
        jobs.extend(scenarios.iter().map(|it| job(it, seed, plant)));
        let has_drains = self.built.is_patched() && plant.is_none();
        jobs.extend(has_drains.then(|| Job::shell("drains", DRAINS)));
        let mut append = vec![FRAMES];
        append.extend(plant.map(|_| LOCKUP));
        append.extend(plant.map(|it| it.kernel.as_str()));
        let outcome = Guest {
            image: &self.built.image,
            machine: Machine {
                nodes: machine.nodes,
                pti: machine.pti,
                la57: machine.la57,
                pmem_mib: machine.pmem_mib,
                iommu: machine.iommu,
                icount: self.args.icount,
                ..Machine::plain(machine.cpus, machine.memory_mib)
            },
            append: &append,
            programs: &self.programs,
            disks: &self.disks,
            pmem: None,
            jobs: &jobs,
            limit: Duration::from_secs(BOOT + SCENARIO * scenarios.len() as u64),
            preset: None,
            lines: false,
            adversary: true,
            stores: false,
            directory: &self.directory,
        }
        .run_unless_silent(self.workspace, plant.map(|_| SILENCE));
        let mut done = outcome.and_then(|outcome| ready(outcome.done));
        let listed = match &mut done {
            Ok(done) if has_drains => done.pop(),
            _ => None,
        };
        let path = self.directory.join("findings/adversary.json");
        match Findings::read(&path, &self.symbols) {
            Ok(mut findings) => {
                findings.counts.drains = listed.map_or(0, |it| drains(&it.out));
                Ok((done, findings))
            }
            // What went wrong in the guest explains more.
            Err(error) => Err(done.err().unwrap_or(error)),
        }
    }

    fn ready_line(&self) -> String {
        match self.built.is_patched() {
            true => format!("{} && {}", self.plan.ready, self.plan.patched),
            false => self.plan.ready.clone(),
        }
    }
}

/// A bug is there only while its scenario runs, so that it cannot break the rest of the guest.
fn job(scenario: &Scenario, seed: u64, plant: Option<&Plant>) -> Job {
    let mut line = scenario.line(seed);
    if let Some(plant) = plant {
        if !plant.spoil.is_empty() {
            let spoil = &plant.spoil;
            line = format!("echo {spoil} > {SPOIL}; {line}; echo nothing > {SPOIL}");
        }
        if !plant.shell.is_empty() {
            line = format!("{}; {line}", plant.shell);
        }
    }
    let words = ["/bin/section", &scenario.name, "/bin/busybox", "sh", "-ec"];
    let mut command: Vec<String> = words.map(str::to_owned).into();
    command.push(line);
    Job {
        name: scenario.name.clone(),
        command,
    }
}

/// Takes the job that prepared the guest from the results.
fn ready(mut done: Vec<Done>) -> Result<Vec<Done>> {
    let ready = done.remove(0);
    match ready.status {
        Status::Exit(0) => Ok(done),
        _ => {
            let why = format!("preparing the guest: {}", ready.err.trim_end());
            Err(LabError::Test(why).into())
        }
    }
}

/// The number of drains in what [`DRAINS`] prints.
fn drains(listing: &str) -> u64 {
    let numbers = listing.lines().filter_map(|line| line.split_once(' '));
    numbers
        .filter_map(|(_, number)| number.parse::<u64>().ok())
        .sum()
}

/// The error of a scenario that did not pass.
fn passed(done: &[Done]) -> Result<()> {
    match done
        .iter()
        .map(Ran::new)
        .find(|it| it.ended != Ended::Passed)
    {
        None => Ok(()),
        Some(ran) => Err(LabError::Test(ran.says).into()),
    }
}

impl Plain {
    fn add(&mut self, done: Vec<Done>, findings: Findings) {
        self.counts.add(&findings.counts);
        self.reports.extend(findings.reports);
        for done in done {
            let ran = Ran::new(&done);
            match self.scenarios.iter_mut().find(|it| it.name == ran.name) {
                Some(known) if known.ended != Ended::Failed => *known = ran,
                Some(_) => {}
                None => self.scenarios.push(ran),
            }
        }
    }

    /// What is wrong with the kernel or the run.
    pub fn problem(&self) -> Option<String> {
        let failed = self.scenarios.iter().filter(|it| it.ended == Ended::Failed);
        let failed: Vec<&str> = failed.map(|it| it.name.as_str()).collect();
        if !self.reports.is_empty() {
            return Some(format!(
                "hardware could be hurt in {} ways",
                self.reports.len()
            ));
        }
        if !failed.is_empty() {
            return Some(format!("failed: {}", failed.join(", ")));
        }
        self.counts.problem()
    }
}

impl Ran {
    fn new(done: &Done) -> Ran {
        let ended = match done.status {
            Status::Exit(0) => Ended::Passed,
            NOT_POSSIBLE => Ended::NotPossible,
            _ => Ended::Failed,
        };
        let says = match ended {
            Ended::Passed => String::new(),
            _ => format!("{}: {}", done.status, why(done)),
        };
        Ran {
            name: done.name.clone(),
            ended,
            says,
        }
    }
}

/// What a scenario says of its failure: its last words, or the tests and checks that failed.
fn why(done: &Done) -> String {
    let said = files::last_lines(&done.err, 3);
    if !said.is_empty() {
        return said;
    }
    let failed = Tap::parse(&done.out).failed;
    let checks = done.out.lines().filter_map(|line| line.strip_prefix("# "));
    let checks = checks
        .filter(|line| line.contains(".c:"))
        .map(str::to_owned);
    failed
        .into_iter()
        .chain(checks)
        .collect::<Vec<_>>()
        .join("; ")
}

impl Planted {
    fn new(
        plant: &Plant,
        variant: &str,
        error: Option<anyhow::Error>,
        findings: Findings,
    ) -> Planted {
        // The kernel counts the flushes that it left out.
        let took_effect = plant.spoil.is_empty() || findings.counts.planted > 0;
        let caught = !findings.reports.is_empty() && took_effect;
        let says = match (&error, caught) {
            (_, true) => String::new(),
            (Some(error), _) => error.to_string(),
            (None, _) if !took_effect => "no flush was changed".to_owned(),
            (None, _) => "nothing was found".to_owned(),
        };
        Planted {
            name: plant.name.clone(),
            breaks: plant.breaks.clone(),
            variant: variant.to_owned(),
            scenario: plant.scenario.clone(),
            caught,
            guests: 1,
            seconds: findings.found_after.filter(|_| caught),
            reports: findings.reports,
            counts: findings.counts,
            says,
            unseen: plant.unseen.clone(),
        }
    }

    /// Whether it must be found, and was not.
    pub fn is_missed(&self) -> bool {
        !self.caught && self.unseen.is_empty()
    }

    /// The kinds of its findings.
    pub fn kinds(&self) -> String {
        let kinds: BTreeSet<&str> = self.reports.iter().map(|it| it.finding.as_str()).collect();
        kinds.into_iter().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
