// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the tests of a suite on one kernel.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::Args;
use super::checked::Checked;
use super::mm::Tests;
use super::plan::{Case, Group, Plan, SET_UP, SuiteName};
use super::sheet::Kernel;
use super::verdict::Verdict;
use crate::cmd::adversary::tested::FRAMES;
use crate::error::LabError;
use crate::guest::{Guest, Job, Part, Program, Status, Survey};
use crate::kernel::Built;
use crate::scenario::DiskSpec;
use crate::workspace::Workspace;
use crate::{files, output};

/// The job that prepares a guest for the tests.
const READY: &str = "ready";
/// Size of each of the two disks, MiB.
const DISK_MIB: u64 = 512;
/// Factor for the time limits of a debug kernel.
const SLOWER: u64 = 3;
/// The same for the adversarial TLB, rounded up.
const CHECKED_SLOWER: u64 = 3;
/// Prints the kernel's warnings on the console too.
const LOUD: &str = "loglevel=5";
/// Seconds beyond the tests' limits: for booting, and for killing processes.
const SLACK: u64 = 120;

/// A kernel and what its guests need.
pub(super) struct TestedKernel<'a> {
    workspace: &'a Workspace,
    plan: &'a Plan,
    built: &'a Built,
    tests: Option<&'a Tests>,
    resume: bool,
    programs: Vec<Program>,
    disks: [PathBuf; 2],
    /// The file systems that are built into the kernel.
    file_systems: Vec<String>,
    /// Factor for the time limits.
    slower: u64,
    /// Guests booted so far; each has its own directory.
    guests: Cell<u32>,
    /// With the adversarial TLB: what it found.
    checked: Option<RefCell<Checked>>,
}

pub(super) type Found = Vec<(String, Verdict)>;

/// Results that are kept for `--resume`.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// Changes with the kernel and the test programs.
    stamp: u64,
    /// Results by shell line of the guest.
    found: BTreeMap<String, Verdict>,
}

impl<'a> TestedKernel<'a> {
    pub(super) fn ready(
        workspace: &'a Workspace,
        plan: &'a Plan,
        built: &'a Built,
        tests: Option<&'a Tests>,
        args: &Args,
    ) -> Result<TestedKernel<'a>> {
        let mut programs = Program::installed("busybox")?;
        // For tests that call system().
        let shell = Program {
            host: programs[0].host.clone(),
            guest: "/bin/sh".to_owned(),
        };
        programs.push(shell);
        programs.push(Program::compiled(workspace, "within")?);
        let checked = match args.adversary {
            true => Some(RefCell::new(Checked::new(built)?)),
            false => None,
        };
        if args.adversary {
            programs.push(Program::compiled(workspace, "section")?);
        }
        if let Some(tests) = tests {
            programs.extend(tests.programs.iter().cloned());
        }
        if args.asks_for_suite(SuiteName::Stress) {
            programs.extend(Program::installed("stress-ng")?);
        }
        if args.asks_for_suite(SuiteName::Files) {
            programs.push(Program::compiled(workspace, "fileload")?);
        }
        let disk = DiskSpec {
            empty_mib: DISK_MIB,
            ..DiskSpec::default()
        };
        let disk = disk.made(workspace)?;
        let config = files::read_text(&built.config)?;
        let is_slow = config.lines().any(|line| line == "CONFIG_KASAN=y");
        let file_systems = built_in(&config);
        Ok(TestedKernel {
            workspace,
            plan,
            built,
            tests,
            resume: args.resume,
            programs,
            // Each guest starts from the same image; its writes are discarded.
            disks: [disk.clone(), disk],
            file_systems,
            slower: slower(is_slow, args.adversary),
            guests: Cell::new(0),
            checked,
        })
    }

    /// With the adversarial TLB: what it found.
    pub(super) fn checked(self) -> Option<Checked> {
        self.checked.map(RefCell::into_inner)
    }

    pub(super) fn kernel(&self) -> Kernel {
        Kernel {
            variant: self.built.variant.clone(),
            release: self.built.release.clone(),
        }
    }

    /// Returns the result of a test that this kernel cannot run.
    pub(super) fn obstacle(&self, group: &Group, case: &Case) -> Option<Verdict> {
        if !self.file_systems.contains(&group.file_system) {
            return Some(Verdict::skipped());
        }
        let tests = self.tests.filter(|_| group.suite == SuiteName::Mm)?;
        Some(Verdict::not_built(&tests.problem(&case.name)?))
    }

    /// Runs a group's tests, or reuses their results from an earlier call with `--resume`.
    pub(super) fn run(&self, group: &Group) -> Result<Found> {
        let path =
            self.directory()
                .join(format!("{}-{}.json", group.suite.name(), group.file_system));
        let mut kept = self.kept(&path)?;
        let key = |case: &Case| case.line(self.slower);
        let is_new = |case: &&Case| {
            let is_kept = self.resume && kept.found.contains_key(&key(case));
            !is_kept && self.obstacle(group, case).is_none()
        };
        let new: Vec<&Case> = group.cases.iter().filter(is_new).collect();
        let began = Instant::now();
        let mut results: BTreeMap<String, Verdict> =
            self.boot_until_done(group, &new)?.into_iter().collect();
        if let Some(verdict) = results.remove(SET_UP) {
            kept.found.insert(SET_UP.to_owned(), verdict);
        }
        for case in &new {
            if let Some(verdict) = results.remove(&case.name) {
                kept.found.insert(key(case), verdict);
            }
        }
        if !new.is_empty() {
            output::note(format_args!(
                "{}: {} on {}: {} tests in {:.0} s",
                self.built.variant,
                group.suite.name(),
                group.file_system,
                new.len(),
                began.elapsed().as_secs_f64()
            ));
            files::write(&path, &serde_json::to_vec_pretty(&kept)?)?;
        }
        let set_up = kept.found.get(SET_UP).cloned();
        let mut found: Found = set_up
            .map(|verdict| (group.set_up_name(), verdict))
            .into_iter()
            .collect();
        for case in &group.cases {
            let verdict = self.obstacle(group, case);
            let verdict = verdict.or_else(|| kept.found.get(&key(case)).cloned());
            found.extend(verdict.map(|verdict| (case.name.clone(), verdict)));
        }
        Ok(found)
    }

    /// Directory of this kernel's results and guests.
    fn directory(&self) -> PathBuf {
        self.workspace
            .cache
            .join("outside")
            .join(&self.built.variant)
    }

    fn kept(&self, path: &Path) -> Result<Kept> {
        let mut hasher = DefaultHasher::new();
        files::read(&self.built.image)?.hash(&mut hasher);
        for program in &self.programs {
            (&program.guest, fs::metadata(&program.host)?.len()).hash(&mut hasher);
        }
        let stamp = hasher.finish();
        let old: Option<Kept> = files::read(path)?.and_then(|it| serde_json::from_slice(&it).ok());
        Ok(old.filter(|it| it.stamp == stamp).unwrap_or(Kept {
            stamp,
            ..Kept::default()
        }))
    }

    /// Boots guests until each test has a result: after a crash the remaining tests are run in
    /// another guest. The first result is that of booting and preparing the guests.
    pub(super) fn boot_until_done(&self, group: &Group, cases: &[&Case]) -> Result<Found> {
        let mut found = Vec::new();
        let mut reports = Vec::new();
        let mut left = cases.to_vec();
        while !left.is_empty() {
            let survey = self.boot(group, &left)?;
            reports.extend(survey.boot);
            let mut parts = survey.parts.into_iter();
            match parts.next() {
                Some(Part::Ended(done, more)) if done.status == Status::Exit(0) => {
                    reports.extend(more);
                }
                other => {
                    let why = format!("{}: preparing a guest: {other:?}", self.built.variant);
                    return Err(LabError::Test(why).into());
                }
            }
            let mut rest = Vec::new();
            for (case, part) in left.iter().zip(parts) {
                let verdict = Verdict::of(&part, self.plan.skipped(group.suite));
                match verdict {
                    Some(verdict) => {
                        let verdict = verdict.with_console(&survey.console);
                        found.push((case.name.clone(), verdict));
                    }
                    None => rest.push(*case),
                }
            }
            if rest.len() == left.len() {
                let why = format!("{}: a guest ran no test", self.built.variant);
                return Err(LabError::Test(why).into());
            }
            left = rest;
        }
        if !found.is_empty() {
            found.insert(0, (SET_UP.to_owned(), Verdict::set_up(&reports)));
        }
        Ok(found)
    }

    /// Runs one guest.
    fn boot(&self, group: &Group, cases: &[&Case]) -> Result<Survey> {
        let mkfs = format!("mkfs.{}", group.file_system);
        let mut programs = self.programs.clone();
        programs.extend(Program::installed(&mkfs)?);
        let mut jobs = vec![Job::shell(READY, &self.ready_line(group, &mkfs))];
        let lines = cases.iter();
        jobs.extend(lines.map(|case| Job::shell(&case.job, &case.line(self.slower))));
        let within = |case: &&Case| case.within * self.slower;
        let all: u64 = cases.iter().map(within).sum();
        let longest = cases.iter().map(within).max().unwrap_or(0);
        self.guests.set(self.guests.get() + 1);
        let directory = self.directory().join(format!(
            "{}-{}-{}",
            self.guests.get(),
            group.suite.name(),
            group.file_system
        ));
        let append: &[&str] = match self.checked {
            Some(_) => &[LOUD, FRAMES],
            None => &[LOUD],
        };
        let survey = Guest {
            image: &self.built.image,
            machine: self.plan.machine,
            append,
            programs: &programs,
            disks: &self.disks,
            pmem: None,
            jobs: &jobs,
            limit: Duration::from_secs(SLACK + all + cases.len() as u64),
            preset: None,
            lines: false,
            adversary: self.checked.is_some(),
            stores: false,
            directory: &directory,
        }
        .survey(self.workspace, Duration::from_secs(SLACK + longest))?;
        if let Some(checked) = &self.checked {
            checked.borrow_mut().add(&directory);
        }
        Ok(survey)
    }

    /// Mounts the file system, enables swap, and does what the suite and a patched kernel need.
    fn ready_line(&self, group: &Group, mkfs: &str) -> String {
        let mut line = format!(
            "mkdir -p /data && {mkfs} -q /dev/vda && mount -t {} /dev/vda /data && \
             mkswap /dev/vdb && swapon /dev/vdb && {}",
            group.file_system, group.ready
        );
        if self.built.is_patched() {
            line += &format!(" && {}", self.plan.patched);
        }
        if self.checked.is_some() {
            // The adversarial TLB checks from the first section on.
            line += " && /bin/section tests /bin/busybox true";
        }
        line
    }
}

/// The factor for time limits.
fn slower(is_debug: bool, is_checked: bool) -> u64 {
    let of_kernel = if is_debug { SLOWER } else { 1 };
    let of_plugin = if is_checked { CHECKED_SLOWER } else { 1 };
    of_kernel * of_plugin
}

/// The file systems that a .config has built in (`CONFIG_XFS_FS=y`).
fn built_in(config: &str) -> Vec<String> {
    let name = |line: &str| {
        let name = line.strip_prefix("CONFIG_")?.strip_suffix("_FS=y")?;
        Some(name.to_lowercase())
    };
    config.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_those_that_are_built_in() {
        let config = "CONFIG_EXT4_FS=y\nCONFIG_XFS_FS=m\n# CONFIG_BTRFS_FS is not set\n";
        assert_eq!(built_in(config), ["ext4"]);
    }
}
