// SPDX-License-Identifier: MIT OR Apache-2.0
//! `toll-lab selftest`: runs the patch queue's own tests on a patched kernel.

mod plants;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, ValueEnum};
use serde::Serialize;

use super::Shape;
use crate::error::LabError;
use crate::guest::{Done, Guest, Job, Machine, Outcome, Program, Status};
use crate::kernel::{Built, Variant, build};
use crate::scenario::DiskSpec;
use crate::tap::Tap;
use crate::workspace::Workspace;
use crate::{files, output};

/// Exit status of kselftest programs that cannot run here.
const SKIPPED: Status = Status::Exit(4);
/// Name of the job that prepares the guest for the tests.
const READY: &str = "ready";
/// Size of each of the two disks, MiB; the minimum for XFS is 300.
const DISK_MIB: u64 = 320;
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
/// Directory of the tests in a kernel tree.
const TESTS: &str = "tools/testing/selftests/tollfree";

const EXAMPLE: &str = "\
Example:
  toll-lab selftest tollfree-debug --cpus 4
  toll-lab selftest tollfree --cpus 4 --only econ -- a_profile_is_obeyed
  toll-lab selftest tollfree-debug --cpus 4 --plants
  toll-lab selftest tollfree-debug --cpus 4 --plants=no_flush,two_writers";

/// Run the patch queue's own tests in a guest
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// Kernel variant
    #[arg(value_name = "VARIANT", default_value = "tollfree")]
    variant: String,
    #[command(flatten)]
    shape: Shape,
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
    /// Run only this program (econ, luf, morsel ...)
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["stress", "plants"])]
    only: Option<String>,
    /// Run only these tests of the program
    #[arg(value_name = "TEST", last = true, requires = "only")]
    named: Vec<String>,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn asks_for(&self, test: &Program) -> bool {
        match (&self.only, self.stress) {
            (Some(only), _) => name(test) == only,
            (None, Some(_)) => name(test).ends_with(STRESS),
            (None, None) => true,
        }
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
            self.shape.cpus,
            self.nodes,
            self.shape.memory
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileSystem {
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
        }
    }

    /// Command that creates the file system.
    fn mkfs(self) -> String {
        format!("mkfs.{}", self.name())
    }

    /// Symbols that the lab's kernels lack for it.
    fn fragments(self, workspace: &Workspace) -> Vec<PathBuf> {
        match self {
            FileSystem::Ext4 => Vec::new(),
            _ => vec![workspace.kernel.join("config/selftest.config")],
        }
    }

    /// Shell line that loads modules, prepares a directory on the file system, and enables swap.
    fn make_ready(self, modules: &[Program]) -> String {
        let (mkfs, name) = (self.mkfs(), self.name());
        let load = |module: &Program| format!("insmod {} && ", module.guest);
        let load: String = modules.iter().map(load).collect();
        format!(
            "{load}mkdir -p /data /tmp && {mkfs} -q /dev/vda && mount -t {name} /dev/vda /data && \
             mkswap /dev/vdb && swapon /dev/vdb"
        )
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
        let variant = Variant::find(&workspace, &args.variant, &args.fs.fragments(&workspace))?;
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
        let append: Vec<&str> = [LOUD].iter().chain(append).copied().collect();
        let mut outcome = Guest {
            image: &self.built.image,
            machine: Machine {
                nodes: self.args.nodes,
                pti: self.args.pti,
                la57: self.args.la57,
                icount: self.args.icount,
                ..Machine::plain(self.args.shape.cpus, self.args.shape.memory)
            },
            append: &append,
            programs: &self.programs,
            disks: &self.disks,
            jobs: &all,
            limit: Duration::from_secs(seconds),
            preset: None,
            lines: false,
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
    let tests = session.tests.iter();
    let mut jobs: Vec<Job> = tests
        .filter(|test| args.asks_for(test))
        .map(|test| job(test, args.settings(), &words))
        .collect();
    if jobs.is_empty() {
        let names: Vec<&str> = session.tests.iter().map(name).collect();
        let why = format!("--only: expected one of {}", names.join(", "));
        return Err(LabError::Usage(why).into());
    }
    let stress = args.stress.unwrap_or(0) * jobs.len() as u64;
    if args.stress.is_none() && args.only.is_none() && has_kunit(&session.built)? {
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

/// Compiles the tests of a kernel tree with their own Makefile.
fn compile(built: &Built) -> Result<Vec<Program>> {
    let directory = built.tree.join(TESTS);
    if !directory.is_dir() {
        let why = "has no tests of tollfree: they belong to the variants named tollfree";
        return Err(LabError::Usage(format!("{}: {why}", built.variant)).into());
    }
    let output = built.config.with_file_name("selftests");
    std::fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
    make(&directory, &output, "all")?;
    let names = make(&directory, &output, "emit_tests")?;
    let program = |name: &str| Program {
        host: output.join(name),
        guest: format!("/test/{name}"),
    };
    let programs: Vec<Program> = names
        .lines()
        .filter_map(|line| line.strip_prefix("tollfree:"))
        .map(program)
        .collect();
    match programs.is_empty() {
        true => Err(LabError::Input(format!("{}: names no test", directory.display())).into()),
        false => Ok(programs),
    }
}

fn make(directory: &Path, output: &Path, target: &str) -> Result<String> {
    let run = Command::new("make")
        .args(["--no-print-directory", "-s", "-C"])
        .arg(directory)
        .arg(format!("OUTPUT={}", output.display()))
        .args(["COLLECTION=tollfree", target])
        .env_remove("MAKEFLAGS")
        .output()
        .map_err(|error| LabError::Missing(format!("make: {error}")))?;
    if run.status.success() {
        return Ok(String::from_utf8_lossy(&run.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&run.stderr);
    Err(LabError::Build(format!(
        "{}: make {target}: {}",
        directory.display(),
        said.trim_end()
    ))
    .into())
}

/// Adds a module as a guest file.
fn module(file: &Path) -> Program {
    let name = file.file_name().unwrap_or_default();
    Program {
        host: file.to_owned(),
        guest: format!("/lib/modules/{}", name.to_string_lossy()),
    }
}

/// A test program's name, without its directory.
fn name(program: &Program) -> &str {
    program.guest.rsplit('/').next().unwrap_or_default()
}

fn job(program: &Program, settings: &[&str], words: &[String]) -> Job {
    let mut command: Vec<String> = Vec::new();
    if !settings.is_empty() {
        command.extend(["/bin/busybox", "env"].map(str::to_owned));
        command.extend(settings.iter().map(|&setting| setting.to_owned()));
    }
    command.push(program.guest.clone());
    command.extend_from_slice(words);
    Job {
        name: name(program).to_owned(),
        command,
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
mod tests {
    use std::collections::HashSet;

    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn the_kernel_has_what_the_file_system_needs() {
        let workspace = Workspace::find().unwrap();
        for fs in FileSystem::value_variants() {
            // Built in, or a module: all modules are loaded.
            let symbol = format!("CONFIG_{}_FS=", fs.name().to_uppercase());
            let mut fragments = vec![workspace.kernel.join("config/lab.config")];
            fragments.extend(fs.fragments(&workspace));
            let texts = fragments.iter().map(|it| files::read_text(it).unwrap());
            let text: String = texts.collect();
            let mut values = text.lines().filter_map(|line| line.strip_prefix(&symbol));
            let last = values.next_back().unwrap_or("n");
            assert!(["y", "m"].contains(&last), "{symbol}{last}");
        }
    }

    #[test]
    fn guests_that_differ_have_directories_of_their_own() {
        let shapes = [
            "",
            "--icount",
            "--pti",
            "--la57",
            "--nodes=2",
            "--cpus=4",
            "--memory=2048",
            "--fs=xfs",
        ];
        let directory = |option: &str| {
            let words = ["selftest", option].into_iter().filter(|it| !it.is_empty());
            let matches =
                Args::augment_args(clap::Command::new("selftest")).get_matches_from(words);
            Args::from_arg_matches(&matches)
                .unwrap()
                .directory("tollfree")
        };
        let names: HashSet<String> = shapes.into_iter().map(directory).collect();
        assert_eq!(names.len(), shapes.len(), "{names:?}");
    }

    #[test]
    fn code_may_change_where_one_thread_runs_all_cpus() {
        let program = Program {
            host: PathBuf::new(),
            guest: "/test/luf".to_owned(),
        };
        let minute = ["60".to_owned()];
        assert_eq!(job(&program, &[], &[]).command, ["/test/luf"]);
        assert_eq!(job(&program, &[], &minute).command, ["/test/luf", "60"]);
        let fixed = job(&program, &[CODE_IS_FIXED], &[]);
        assert_eq!(fixed.name, "luf");
        assert!(
            fixed
                .command
                .join(" ")
                .contains("env TOLLFREE_CODE_IS_FIXED=1 /test/luf")
        );
    }

    #[test]
    fn the_directory_is_on_the_file_system_that_is_asked_for() {
        let ready = FileSystem::Xfs.make_ready(&[]);
        assert!(ready.starts_with("mkdir"));
        assert!(ready.contains("mkfs.xfs -q /dev/vda && mount -t xfs /dev/vda /data"));
    }

    #[test]
    fn modules_are_loaded_before_anything_is_mounted() {
        let modules = ["fs/exportfs/exportfs.ko", "fs/xfs/xfs.ko"].map(|it| module(Path::new(it)));
        let ready = FileSystem::Xfs.make_ready(&modules);
        let load = "insmod /lib/modules/exportfs.ko && insmod /lib/modules/xfs.ko && mkdir";
        assert!(ready.starts_with(load), "{ready}");
    }
}
