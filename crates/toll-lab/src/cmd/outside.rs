// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab outside`: tests that others wrote, on stock and patched kernels.

mod mm;
mod plan;
mod sheet;
mod verdict;

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::guest::{Guest, Job, Part, Program, Status};
use crate::house::House;
use crate::kernel::{Built, Variant, build};
use crate::scenario::DiskSpec;
use crate::{files, output};
use mm::Tests;
use plan::{Case, Group, LeftOut, Plan, SuiteName};
use sheet::{Difference, Kernel, Row, Sheet};
use verdict::Verdict;

/// The job that makes ready what the tests need.
const READY: &str = "ready";
/// Size of each of the two disks, MiB.
const DISK_MIB: u64 = 512;
/// What the lab's kernels lack for it.
const FRAGMENT: &str = "config/outside.config";
/// A debug kernel takes so much longer.
const SLOWER: u64 = 3;
/// Warnings are reports as well, and stand on the console.
const LOUD: &str = "loglevel=5";
/// Seconds that a guest may take to boot, and that a test's processes may take to die.
const SLACK: u64 = 120;
/// The classes of stress-ng's stressors.
const CLASSES: [&str; 2] = ["memory", "vm"];

const EXAMPLE: &str = "\
Examples:
  toll-lab outside --markdown docs/results/outside.md
  toll-lab outside --suite mm --variant vanilla --variant tollfree -- cow khugepaged

What is run, what is left out and what explains a difference is in lab/outside.toml.
Ends with status 5 where a kernel differs from the first one and nothing there says why.";

/// Run tests of others on stock and patched kernels: Linux's own of memory management, stress-ng, a load on files
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// The kernels; the first is what the others are compared with
    #[arg(long = "variant", value_name = "VARIANT", default_values = ["vanilla", "tollfree", "tollfree-debug"])]
    variants: Vec<String>,
    /// Only these suites
    #[arg(long = "suite", value_name = "SUITE")]
    suites: Vec<SuiteName>,
    /// How often a test is run again on all kernels where one gave what the first did not
    #[arg(long, value_name = "TIMES", default_value_t = 2)]
    again: u32,
    /// Take what an earlier call has run of the same kernels and tests
    #[arg(long)]
    resume: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Write them as a document, too
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Only tests whose names begin with one of these
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

    /// As it was called.
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
    let house = House::find()?;
    let plan = Plan::read(&house)?;
    let fragment = [house.kernel.join(FRAGMENT)];
    let built = args
        .variants
        .iter()
        .map(|name| build(&house, &Variant::find(&house, name, &fragment)?))
        .collect::<Result<Vec<_>>>()?;
    let tests = match args.asks_for_suite(SuiteName::Mm) {
        true => Some(Tests::compile(&built[0])?),
        false => None,
    };
    let groups = groups(args, &plan, tests.as_ref())?;
    let benches = built
        .iter()
        .map(|built| Bench::ready(&house, &plan, built, tests.as_ref(), args))
        .collect::<Result<Vec<_>>>()?;
    let mut sheet = Sheet::new(benches.iter().map(Bench::kernel).collect());
    for (number, bench) in benches.iter().enumerate() {
        for group in &groups {
            let mut found = bench.not_built(group);
            let rest = |case: &&Case| found.iter().all(|(name, _)| *name != case.name);
            let rest: Vec<&Case> = group.cases.iter().filter(rest).collect();
            found.extend(bench.run(group, &rest)?);
            // In the order of the plan.
            for case in &group.cases {
                let of_case = found.iter().filter(|(name, _)| *name == case.name);
                for (name, verdict) in of_case {
                    sheet.add(number, group.suite, name, verdict.clone());
                }
            }
        }
    }
    for _ in 0..args.again {
        again(&benches, &groups, &mut sheet)?;
    }
    tell(args, &plan, &sheet)
}

/// Runs those tests on all kernels once more of which one gave what the first did not.
fn again(benches: &[Bench], groups: &[Group], sheet: &mut Sheet) -> Result<()> {
    for group in groups {
        let is_strange = |case: &&Case| sheet.is_strange(group.suite, &case.name);
        let cases: Vec<&Case> = group.cases.iter().filter(is_strange).collect();
        for (number, bench) in benches.iter().enumerate() {
            for (name, verdict) in bench.boot_until_done(group, &cases)? {
                sheet.add(number, group.suite, &name, verdict);
            }
        }
    }
    Ok(())
}

fn tell(args: &Args, plan: &Plan, sheet: &Sheet) -> Result<()> {
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
                "other than on {first}, and not explained: {}",
                names.join(", ")
            );
            Err(LabError::Test(why).into())
        }
    }
}

/// The tests that are asked for, by guest.
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

/// The stressors, as stress-ng itself names them.
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

/// What follows on `class 'x' stressors: `.
fn names(text: &str) -> Vec<String> {
    let list = text.split_once("stressors: ").map_or("", |(_, list)| list);
    list.split_whitespace().map(str::to_owned).collect()
}

/// A kernel that the tests are run on.
struct Bench<'a> {
    house: &'a House,
    plan: &'a Plan,
    built: &'a Built,
    tests: Option<&'a Tests>,
    resume: bool,
    programs: Vec<Program>,
    disks: [PathBuf; 2],
    /// How often the usual time.
    slower: u64,
}

type Found = Vec<(String, Verdict)>;

/// What was run of a group before.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    /// Changes with the kernel and the tests.
    stamp: u64,
    found: BTreeMap<String, Verdict>,
}

impl<'a> Bench<'a> {
    fn ready(
        house: &'a House,
        plan: &'a Plan,
        built: &'a Built,
        tests: Option<&'a Tests>,
        args: &Args,
    ) -> Result<Bench<'a>> {
        let mut programs = Program::installed("busybox")?;
        // What tests call by system().
        let shell = Program {
            host: programs[0].host.clone(),
            guest: "/bin/sh".to_owned(),
        };
        programs.push(shell);
        programs.push(Program::compiled(house, "within")?);
        if let Some(tests) = tests {
            programs.extend(tests.programs.iter().cloned());
        }
        if args.asks_for_suite(SuiteName::Stress) {
            programs.extend(Program::installed("stress-ng")?);
        }
        if args.asks_for_suite(SuiteName::Files) {
            programs.push(Program::compiled(house, "fileload")?);
        }
        let disk = DiskSpec {
            empty_mib: DISK_MIB,
            ..DiskSpec::default()
        };
        let disk = disk.made(house)?;
        let config = files::read_text(&built.config)?;
        let is_slow = config.lines().any(|line| line == "CONFIG_KASAN=y");
        Ok(Bench {
            house,
            plan,
            built,
            tests,
            resume: args.resume,
            programs,
            // What a guest writes to one is forgotten.
            disks: [disk.clone(), disk],
            slower: if is_slow { SLOWER } else { 1 },
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

    fn not_built(&self, group: &Group) -> Found {
        let Some(tests) = self.tests.filter(|_| group.suite == SuiteName::Mm) else {
            return Vec::new();
        };
        let problem = |case: &Case| {
            let why = tests.problem(&case.name)?;
            Some((case.name.clone(), Verdict::not_built(&why)))
        };
        group.cases.iter().filter_map(problem).collect()
    }

    /// Runs tests of a group that no earlier call has run, if that is asked for.
    fn run(&self, group: &Group, cases: &[&Case]) -> Result<Found> {
        let path = self.house.cache.join("outside").join(format!(
            "{}-{}-{}.json",
            self.built.variant,
            group.suite.name(),
            group.file_system
        ));
        let mut kept = self.kept(&path)?;
        let is_new = |case: &&&Case| !self.resume || !kept.found.contains_key(&case.name);
        let new: Vec<&Case> = cases.iter().filter(is_new).copied().collect();
        let began = Instant::now();
        for (name, verdict) in self.boot_until_done(group, &new)? {
            kept.found.insert(name, verdict);
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
        let of_case = |case: &&Case| {
            let verdict = kept.found.get(&case.name)?;
            Some((case.name.clone(), verdict.clone()))
        };
        Ok(cases.iter().filter_map(of_case).collect())
    }

    fn kept(&self, path: &std::path::Path) -> Result<Kept> {
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

    /// Boots guests until each of the tests has a result: one that a guest did not survive is
    /// followed by the others in the next guest.
    fn boot_until_done(&self, group: &Group, cases: &[&Case]) -> Result<Found> {
        let mut found = Vec::new();
        let mut left = cases.to_vec();
        while !left.is_empty() {
            let parts = self.boot(group, &left)?;
            let mut rest = Vec::new();
            for (case, part) in left.iter().zip(&parts) {
                match Verdict::of(part, self.plan.skipped(group.suite)) {
                    Some(verdict) => found.push((case.name.clone(), verdict)),
                    None => rest.push(*case),
                }
            }
            if rest.len() == left.len() {
                let why = format!("{}: a guest in which no test was begun", self.built.variant);
                return Err(LabError::Test(why).into());
            }
            left = rest;
        }
        Ok(found)
    }

    /// One guest: what became of each test.
    fn boot(&self, group: &Group, cases: &[&Case]) -> Result<Vec<Part>> {
        let mkfs = format!("mkfs.{}", group.file_system);
        let mut programs = self.programs.clone();
        programs.extend(Program::installed(&mkfs)?);
        let mut jobs = vec![Job::shell(READY, &self.ready_line(group, &mkfs))];
        let lines = cases.iter();
        jobs.extend(lines.map(|case| Job::shell(&case.job, &case.line(self.slower))));
        let seconds: u64 = cases.iter().map(|case| case.within * self.slower + 1).sum();
        let longest = cases.iter().map(|case| case.within * self.slower).max();
        let folder = self
            .house
            .cache
            .join("outside")
            .join(format!("{}-{}", self.built.variant, group.file_system));
        let survey = Guest {
            image: &self.built.image,
            machine: self.plan.machine,
            append: &[LOUD],
            programs: &programs,
            disks: &self.disks,
            jobs: &jobs,
            limit: Duration::from_secs(SLACK + seconds),
            preset: None,
            lines: false,
            folder: &folder,
        }
        .survey(
            self.house,
            Duration::from_secs(longest.unwrap_or(0) + SLACK),
        )?;
        let mut parts = survey.parts;
        match parts.remove(0) {
            Part::Ended(done, _) if done.status == Status::Exit(0) => Ok(parts),
            other => {
                let why = format!("{}: what the tests need: {other:?}", self.built.variant);
                Err(LabError::Test(why).into())
            }
        }
    }

    /// Makes ready a folder on the file system, swap, and what the suite asks for.
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
    fn stressors_are_named_by_the_program() {
        let text = "class 'vm' stressors: bad-altstack brk \n";
        assert_eq!(names(text), ["bad-altstack", "brk"]);
        assert!(names("stress-ng: info: x").is_empty());
    }
}
