// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab outside`: test suites of other projects, on stock and patched kernels.

mod mm;
mod plan;
mod sheet;
mod verdict;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::guest::{Guest, Job, Part, Program, Status, Survey};
use crate::kernel::{Built, Variant, build};
use crate::scenario::DiskSpec;
use crate::workspace::Workspace;
use crate::{files, output};
use mm::Tests;
use plan::{Case, Group, LeftOut, Plan, SET_UP, SuiteName};
use sheet::{Difference, Kernel, Row, Sheet};
use verdict::Verdict;

/// The job that prepares a guest for the tests.
const READY: &str = "ready";
/// Size of each of the two disks, MiB.
const DISK_MIB: u64 = 512;
/// Factor for the time limits of a debug kernel.
const SLOWER: u64 = 3;
/// Prints the kernel's warnings on the console too.
const LOUD: &str = "loglevel=5";
/// Seconds beyond the tests' limits: for booting, and for killing processes.
const SLACK: u64 = 120;
/// The stressor classes of stress-ng.
const CLASSES: [&str; 2] = ["memory", "vm"];

const EXAMPLE: &str = "\
Examples:
  toll-lab outside --markdown docs/results/outside.md
  toll-lab outside --suite mm --variant vanilla --variant tollfree -- cow khugepaged
  toll-lab outside --config kernel/config/outside.config

lab/outside.toml lists the tests, the excluded tests, and the explained differences.
Status 5: a kernel differs from the first one without an explanation in the file.";

/// Run the kernel's mm selftests, stress-ng and a file-system load on stock and patched kernels
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Kernel variants; the first is the reference
    #[arg(long = "variant", value_name = "VARIANT", default_values = ["vanilla", "tollfree", "tollfree-debug"])]
    variants: Vec<String>,
    /// Run only these suites
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<SuiteName>,
    /// Also set these symbols (a .config fragment)
    #[arg(long, value_name = "FRAGMENT")]
    config: Vec<PathBuf>,
    /// Number of repeats on all kernels for a test with a result that differs from the first
    /// kernel's
    #[arg(long, value_name = "TIMES", default_value_t = 2)]
    again: u32,
    /// Reuse the results of an earlier call with the same kernels and tests
    #[arg(long)]
    resume: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Write the results to this file as a document
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Run only tests with a name that begins with one of these
    #[arg(value_name = "TEST", last = true)]
    named: Vec<String>,
}

impl Args {
    fn asks_for(&self, test: &str) -> bool {
        self.named.is_empty() || self.named.iter().any(|it| test.starts_with(it.as_str()))
    }

    fn asks_for_suite(&self, suite: SuiteName) -> bool {
        self.suites.is_empty() || self.suites.contains(&suite)
    }

    /// The command line without `--resume`.
    fn command(&self) -> String {
        let words = std::env::args().skip(1);
        let words: Vec<String> = words.filter(|word| word != "--resume").collect();
        format!("toll-lab {}", words.join(" "))
    }
}

#[derive(Serialize)]
struct Report<'a> {
    kernels: &'a [Kernel],
    rows: &'a [Row],
    differences: &'a [Difference],
    left_out: &'a [LeftOut],
}

pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::find()?;
    let plan = Plan::read(&workspace)?;
    let variants = args
        .variants
        .iter()
        .map(|name| Variant::find(&workspace, name, &args.config))
        .collect::<Result<Vec<_>>>()?;
    let built = variants
        .iter()
        .map(|variant| build(&workspace, variant))
        .collect::<Result<Vec<_>>>()?;
    let tests = match args.asks_for_suite(SuiteName::Mm) {
        true => Some(Tests::compile(&built[0])?),
        false => None,
    };
    let groups = groups(args, &plan, tests.as_ref())?;
    let tested = built
        .iter()
        .map(|built| TestedKernel::ready(&workspace, &plan, built, tests.as_ref(), args))
        .collect::<Result<Vec<_>>>()?;
    let mut sheet = Sheet::new(tested.iter().map(TestedKernel::kernel).collect());
    for (number, tested) in tested.iter().enumerate() {
        for group in &groups {
            for (name, verdict) in tested.run(group)? {
                sheet.add(number, group.suite, &name, verdict);
            }
        }
    }
    for _ in 0..args.again {
        again(&tested, &groups, &mut sheet)?;
    }
    report(args, &plan, &sheet)
}

/// Repeats, on all kernels, the tests with results that differ from the first kernel's.
fn again(tested: &[TestedKernel], groups: &[Group], sheet: &mut Sheet) -> Result<()> {
    for group in groups {
        let differs = |case: &&Case| sheet.differs(group.suite, &case.name);
        let cases: Vec<&Case> = group.cases.iter().filter(differs).collect();
        for (number, tested) in tested.iter().enumerate() {
            let can = |case: &&&Case| tested.obstacle(group, case).is_none();
            let cases: Vec<&Case> = cases.iter().filter(can).copied().collect();
            for (name, verdict) in tested.boot_until_done(group, &cases)? {
                let name = if name == SET_UP {
                    group.set_up_name()
                } else {
                    name
                };
                sheet.add(number, group.suite, &name, verdict);
            }
        }
    }
    Ok(())
}

fn report(args: &Args, plan: &Plan, sheet: &Sheet) -> Result<()> {
    let differences = sheet.differences(plan);
    if args.json {
        output::json(&Report {
            kernels: &sheet.kernels,
            rows: &sheet.rows,
            differences: &differences,
            left_out: &plan.left_out,
        })?;
    } else {
        print!("{}", sheet.table(plan));
    }
    if let Some(path) = &args.markdown {
        files::write(path, sheet.markdown(plan, &args.command()).as_bytes())?;
    }
    let unexplained = differences.iter().filter(|it| it.reason.is_none());
    let names: Vec<String> = unexplained
        .map(|it| format!("{} {} on {}", it.suite.name(), it.test, it.variant))
        .collect();
    match names.is_empty() {
        true => Ok(()),
        false => {
            let first = &sheet.kernels[0].variant;
            let why = format!(
                "differs from {first} without an explanation: {}",
                names.join(", ")
            );
            Err(LabError::Test(why).into())
        }
    }
}

/// Groups the selected tests by guest.
fn groups(args: &Args, plan: &Plan, tests: Option<&Tests>) -> Result<Vec<Group>> {
    let mut all = Vec::new();
    if let Some(tests) = tests {
        let cases: Vec<Case> = plan
            .groups(SuiteName::Mm, &[])
            .into_iter()
            .flat_map(|it| it.cases)
            .collect();
        let is_known = |name: &str| {
            let is_run = cases.iter().any(|case| mm::program(&case.name) == name);
            is_run || plan.is_left_out(SuiteName::Mm, name)
        };
        let unknown = tests.unknown(is_known);
        if !unknown.is_empty() {
            let why = "are neither run nor left out by lab/outside.toml";
            return Err(LabError::Input(format!("mm: {} {why}", unknown.join(", "))).into());
        }
        all.extend(plan.groups(SuiteName::Mm, &[]));
    }
    if args.asks_for_suite(SuiteName::Stress) {
        all.extend(plan.groups(SuiteName::Stress, &stressors()?));
    }
    if args.asks_for_suite(SuiteName::Files) {
        all.extend(plan.groups(SuiteName::Files, &[]));
    }
    for group in &mut all {
        group.cases.retain(|case| args.asks_for(&case.name));
    }
    all.retain(|group| !group.cases.is_empty());
    match all.is_empty() {
        true => Err(LabError::Usage("no test has such a name".to_owned()).into()),
        false => Ok(all),
    }
}

/// Lists the stressors by asking stress-ng itself.
fn stressors() -> Result<Vec<String>> {
    let mut all = Vec::new();
    for class in CLASSES {
        let output = Command::new("stress-ng")
            .args(["--class", &format!("{class}?")])
            .output()
            .map_err(|error| {
                let why = "setup/setup.sh outside installs it";
                LabError::Missing(format!("stress-ng: {error}: {why}"))
            })?;
        all.extend(names(&String::from_utf8_lossy(&output.stdout)));
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// The names after `class 'x' stressors: `.
fn names(text: &str) -> Vec<String> {
    let list = text.split_once("stressors: ").map_or("", |(_, list)| list);
    list.split_whitespace().map(str::to_owned).collect()
}

/// The file systems that a .config has built in (`CONFIG_XFS_FS=y`).
fn built_in(config: &str) -> Vec<String> {
    let name = |line: &str| {
        let name = line.strip_prefix("CONFIG_")?.strip_suffix("_FS=y")?;
        Some(name.to_lowercase())
    };
    config.lines().filter_map(name).collect()
}

/// A kernel and what its guests need.
struct TestedKernel<'a> {
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
}

type Found = Vec<(String, Verdict)>;

/// Results that are kept for `--resume`.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// Changes with the kernel and the test programs.
    stamp: u64,
    /// Results by shell line of the guest.
    found: BTreeMap<String, Verdict>,
}

impl<'a> TestedKernel<'a> {
    fn ready(
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
            slower: if is_slow { SLOWER } else { 1 },
            guests: Cell::new(0),
        })
    }

    fn kernel(&self) -> Kernel {
        Kernel {
            variant: self.built.variant.clone(),
            release: self.built.release.clone(),
        }
    }

    fn is_patched(&self) -> bool {
        self.built.variant.starts_with("tollfree") && self.built.variant != "tollfree-off"
    }

    /// Returns the result of a test that this kernel cannot run.
    fn obstacle(&self, group: &Group, case: &Case) -> Option<Verdict> {
        if !self.file_systems.contains(&group.file_system) {
            return Some(Verdict::skipped());
        }
        let tests = self.tests.filter(|_| group.suite == SuiteName::Mm)?;
        Some(Verdict::not_built(&tests.problem(&case.name)?))
    }

    /// Runs a group's tests, or reuses their results from an earlier call with `--resume`.
    fn run(&self, group: &Group) -> Result<Found> {
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
    fn boot_until_done(&self, group: &Group, cases: &[&Case]) -> Result<Found> {
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
        Guest {
            image: &self.built.image,
            machine: self.plan.machine,
            append: &[LOUD],
            programs: &programs,
            disks: &self.disks,
            jobs: &jobs,
            limit: Duration::from_secs(SLACK + all + cases.len() as u64),
            preset: None,
            lines: false,
            directory: &directory,
        }
        .survey(self.workspace, Duration::from_secs(SLACK + longest))
    }

    /// Mounts the file system, enables swap, and does what the suite and a patched kernel need.
    fn ready_line(&self, group: &Group, mkfs: &str) -> String {
        let mut line = format!(
            "mkdir -p /data && {mkfs} -q /dev/vda && mount -t {} /dev/vda /data && \
             mkswap /dev/vdb && swapon /dev/vdb && {}",
            group.file_system, group.ready
        );
        if self.is_patched() {
            line += &format!(" && {}", self.plan.patched);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_those_that_are_built_in() {
        let config = "CONFIG_EXT4_FS=y\nCONFIG_XFS_FS=m\n# CONFIG_BTRFS_FS is not set\n";
        assert_eq!(built_in(config), ["ext4"]);
    }

    #[test]
    fn stressors_are_named_by_the_program() {
        let text = "class 'vm' stressors: bad-altstack brk \n";
        assert_eq!(names(text), ["bad-altstack", "brk"]);
        assert!(names("stress-ng: info: x").is_empty());
    }
}
