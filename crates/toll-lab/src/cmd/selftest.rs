// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab selftest`: runs the patch queue's own tests on a patched kernel.

mod file_system;
mod plants;
pub(super) mod programs;

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde::Serialize;

use super::GuestArgs;
use crate::error::LabError;
use crate::guest::{Done, Guest, Job, Machine, Outcome, Program, Status};
use crate::kernel::{Built, Variant, build};
use crate::scenario::DiskSpec;
use crate::tap::Tap;
use crate::workspace::Workspace;
use crate::{files, output};
use file_system::FileSystem;
use programs::{compile, job, module, name};

/// Exit status of kselftest programs that cannot run here.
const SKIPPED: Status = Status::Exit(4);
/// Name of the job that prepares the guest for the tests.
const READY: &str = "ready";
/// Size of each of the two disks, MiB; the minimum for XFS is 300.
const DISK_MIB: u64 = 320;
/// Size of /dev/pmem0, MiB.
const PMEM_MIB: u32 = 64;
/// Lets the tests of persistent memory write a device that is mounted.
const WRITABLE: &str = "bdev_allow_write_mounted=1";
/// Name of the job that prints the KUnit results from boot.
const KUNIT: &str = "kunit";
/// Maximum number of output lines shown for a program that did not pass.
const REMARKS: usize = 30;
/// Suffix of stress tests; their argument is the duration in seconds.
const STRESS: &str = "_stress";
/// Environment variable that tells a test that CPUs are emulated in parallel: QEMU may continue to
/// run code that another CPU has modified, and the kernel patches its own code this way.
const CODE_IS_FIXED: &str = "TOLLFREE_CODE_IS_FIXED=1";
/// Warnings are reports as well; print them on the console.
const LOUD: &str = "loglevel=5";

const EXAMPLE: &str = "\
Example:
  toll-lab selftest tollfree-debug --cpus 4
  toll-lab selftest tollfree --cpus 4 --only econ -- a_profile_is_obeyed
  toll-lab selftest tollfree-debug --cpus 4 --plants
  toll-lab selftest tollfree-debug --cpus 4 --plants=no_flush,hole_under_others";

/// Run the patch queue's own tests in a guest
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    #[command(flatten)]
    guest: GuestArgs,
    /// Memory nodes; they share the CPUs and the memory
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    nodes: u32,
    /// Enable page-table isolation
    #[arg(long)]
    pti: bool,
    /// Use five levels of page tables
    #[arg(long)]
    la57: bool,
    /// Run all CPUs on one host thread, with an instruction-count clock; tests that modify code
    /// need it
    #[arg(long)]
    icount: bool,
    /// File system for the tests' files
    #[arg(long, value_name = "NAME", default_value = "ext4")]
    fs: FileSystem,
    /// Run only the stress tests, each for this long
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    stress: Option<u64>,
    /// Plant morselfs bugs, one per guest, and check that the tests find them: all bugs, or these
    #[arg(long, value_name = "BUG", num_args = 0.., require_equals = true,
          value_delimiter = ',', conflicts_with_all = ["stress", "json"])]
    plants: Option<Vec<String>>,
    /// Time limit for the guest, booting included; stress time is added to it
    #[arg(long, value_name = "SECONDS", default_value_t = 2400)]
    within: u64,
    /// Run only these programs (econ, luf, morsel ...)
    #[arg(
        long,
        value_name = "PROGRAM",
        value_delimiter = ',',
        conflicts_with = "plants"
    )]
    only: Vec<String>,
    /// Run only these tests of one program
    #[arg(
        value_name = "TEST",
        last = true,
        requires = "only",
        conflicts_with = "stress"
    )]
    named: Vec<String>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn asks_for(&self, test: &Program) -> bool {
        let is_named = self.only.is_empty() || self.only.iter().any(|only| only == name(test));
        is_named && (self.stress.is_none() || name(test).ends_with(STRESS))
    }

    /// Checks that the named programs are among `tests`, and that tests are named of one alone.
    fn check_names(&self, tests: &[Program]) -> Result<()> {
        let known: Vec<&str> = tests.iter().map(name).collect();
        let is_unknown = |only: &&String| !known.contains(&only.as_str());
        let why = if let Some(unknown) = self.only.iter().find(is_unknown) {
            let known = known.join(", ");
            format!("--only {unknown}: no such program (expected one of {known})")
        } else if !self.named.is_empty() && self.only.len() > 1 {
            format!("{}: name tests of one program", self.named[0])
        } else {
            return Ok(());
        };
        Err(LabError::Usage(why).into())
    }

    /// Names the guest's directory: guests that differ may run side by side.
    fn directory(&self, variant: &str) -> String {
        let options = [
            (self.pti, "pti"),
            (self.la57, "la57"),
            (self.icount, "icount"),
        ];
        let set = options.iter().filter(|(is_set, _)| *is_set);
        let mut name = format!(
            "{variant}-{}-{}x{}-{}",
            self.fs.name(),
            self.guest.cpus,
            self.nodes,
            self.guest.memory
        );
        for (_, option) in set {
            name = format!("{name}-{option}");
        }
        name
    }

    /// Environment that describes the guest to the tests.
    fn settings(&self) -> &'static [&'static str] {
        match self.icount {
            true => &[],
            false => &[CODE_IS_FIXED],
        }
    }
}

/// One test program's result.
#[derive(Debug, Serialize)]
struct Tested {
    program: String,
    #[serde(flatten)]
    tap: Tap,
    /// Reason for a failure.
    problem: Option<String>,
    /// Its other output, if it failed.
    remarks: Vec<String>,
}

/// A kernel, its compiled test programs and their dependencies.
struct Session<'a> {
    args: &'a Args,
    workspace: Workspace,
    built: Built,
    tests: Vec<Program>,
    modules: Vec<Program>,
    programs: Vec<Program>,
    disks: [PathBuf; 2],
    directory: PathBuf,
    _lock: File,
}

impl<'a> Session<'a> {
    fn ready(args: &'a Args) -> Result<Session<'a>> {
        let workspace = Workspace::find()?;
        let variant = Variant::find(
            &workspace,
            &args.guest.variant,
            &args.fs.fragments(&workspace),
        )?;
        let built = build(&workspace, &variant)?;
        let tests = compile(&built)?;
        let modules: Vec<Program> = built.modules.iter().map(|file| module(file)).collect();
        let mut programs = [tests.clone(), modules.clone()].concat();
        programs.extend(Program::installed("busybox")?);
        programs.extend(Program::installed(&args.fs.mkfs())?);
        let disk = DiskSpec {
            empty_mib: DISK_MIB,
            ..DiskSpec::default()
        };
        let disk = disk.made(&workspace)?;
        let directory = workspace
            .cache
            .join("selftest")
            .join(args.directory(&variant.key));
        Ok(Session {
            args,
            _lock: files::lock(&files::with_suffix(&directory, ".lock"))?,
            directory,
            workspace,
            built,
            tests,
            modules,
            programs,
            // Guest writes to the disks are discarded.
            disks: [disk.clone(), disk],
        })
    }

    /// Prepares a guest and queues its jobs.
    fn boot(&self, jobs: Vec<Job>, seconds: u64, append: &[&str]) -> Result<Outcome> {
        let mut all = vec![Job::shell(READY, &self.args.fs.make_ready(&self.modules))];
        all.extend(jobs);
        let append: Vec<&str> = [LOUD, WRITABLE].iter().chain(append).copied().collect();
        let mut outcome = Guest {
            image: &self.built.image,
            machine: Machine {
                nodes: self.args.nodes,
                pti: self.args.pti,
                la57: self.args.la57,
                icount: self.args.icount,
                pmem_mib: PMEM_MIB,
                ..Machine::plain(self.args.guest.cpus, self.args.guest.memory)
            },
            append: &append,
            programs: &self.programs,
            disks: &self.disks,
            pmem: None,
            jobs: &all,
            limit: Duration::from_secs(seconds),
            preset: None,
            lines: false,
            adversary: false,
            stores: false,
            directory: &self.directory,
        }
        .run(&self.workspace)?;
        let ready = outcome.done.remove(0);
        if ready.status != Status::Exit(0) {
            let why = format!("preparing the tests: {}", ready.err.trim_end());
            return Err(LabError::Test(why).into());
        }
        Ok(outcome)
    }
}

pub fn run(args: &Args) -> Result<()> {
    let session = Session::ready(args)?;
    if let Some(asked) = &args.plants {
        return plants::run(&session, asked);
    }
    let mut words = args.named.clone();
    words.extend(args.stress.map(|seconds| seconds.to_string()));
    args.check_names(&session.tests)?;
    let tests = session.tests.iter();
    let mut jobs: Vec<Job> = tests
        .filter(|test| args.asks_for(test))
        .map(|test| job(test, args.settings(), &words))
        .collect();
    if jobs.is_empty() {
        let what = "--stress: none of the programs of --only is a stress test";
        return Err(LabError::Usage(what.to_owned()).into());
    }
    let stress = args.stress.unwrap_or(0) * jobs.len() as u64;
    if args.stress.is_none() && args.only.is_empty() && has_kunit(&session.built)? {
        jobs.push(Job::shell(KUNIT, "cat /sys/kernel/debug/kunit/*/results"));
    }
    let outcome = session.boot(jobs, args.within + stress, &[])?;
    let tested: Vec<Tested> = outcome.done.iter().map(tested).collect();
    if args.json {
        output::json(&tested)?;
    } else {
        tested.iter().for_each(show);
        println!(
            "Linux {} on {}, {:.1} s, console {}",
            session.built.release,
            args.fs.name(),
            outcome.seconds,
            outcome.console.display()
        );
    }
    let failed: Vec<&str> = tested
        .iter()
        .filter(|test| test.problem.is_some())
        .map(|test| test.program.as_str())
        .collect();
    match failed.is_empty() {
        true => Ok(()),
        false => Err(LabError::Test(format!("not passed: {}", failed.join(", "))).into()),
    }
}

fn has_kunit(built: &Built) -> Result<bool> {
    let config = files::read_text(&built.config)?;
    Ok(config.lines().any(|line| line == "CONFIG_KUNIT_DEBUGFS=y"))
}

fn tested(done: &Done) -> Tested {
    let tap = match done.name.as_str() {
        KUNIT => Tap::parse_kunit(&done.out),
        _ => Tap::parse(&done.out),
    };
    let problem = match done.status {
        SKIPPED => None,
        Status::Exit(0) => tap.problem(),
        Status::Exit(code) => Some(tap.problem().unwrap_or(format!("ended with status {code}"))),
        Status::Signal(signal) => Some(format!(
            "was killed by signal {signal}: {}",
            done.err.trim_end()
        )),
    };
    let remarks = match problem {
        Some(_) => remarks(done),
        None => Vec::new(),
    };
    Tested {
        program: done.name.clone(),
        tap,
        problem,
        remarks,
    }
}

/// Returns the end of a program's output without its results.
fn remarks(done: &Done) -> Vec<String> {
    let said = done.out.lines().filter_map(|line| line.strip_prefix("# "));
    let mut all: Vec<String> = said.chain(done.err.lines()).map(str::to_owned).collect();
    all.split_off(all.len().saturating_sub(REMARKS))
}

fn show(test: &Tested) {
    let how = test.problem.as_deref().unwrap_or("ok");
    println!(
        "{:20} {} passed, {} skipped: {how}",
        test.program, test.tap.passed, test.tap.skipped
    );
    for line in &test.remarks {
        println!("    {line}");
    }
}

#[cfg(test)]
mod tests;
