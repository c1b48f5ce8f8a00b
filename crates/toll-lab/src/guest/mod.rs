// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests: a kernel, an initramfs of static programs, and a fixed QEMU command line.
//!
//! The CPU is emulated, so that counts do not depend on the host. A guest contains only what its
//! [`Guest`] lists; its commands' output comes back as files.

mod initramfs;
mod program;
mod qemu;
mod section;
mod survey;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::files;
use crate::preset::Preset;
use crate::workspace::Workspace;
use initramfs::Initramfs;
pub use program::Program;
pub use qemu::Qemu;
use qemu::{BOOT_LIMIT, Ending, Places};
pub use section::{Counts, Latency, Section};
pub use survey::{Part, Survey};

/// Configuration of the emulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Number of CPUs, 1 to 8.
    pub cpus: u32,
    /// Memory of node 0, MiB; of both nodes together if `nodes` is 2.
    pub memory_mib: u32,
    /// Number of nodes: 1, or 2 that share CPUs and memory equally.
    #[serde(default = "one")]
    pub nodes: u32,
    /// Memory of an additional slower node without CPUs, MiB; 0: no such node.
    #[serde(default)]
    pub slow_mib: u32,
    /// Size of persistent memory (/dev/pmem0, with DAX), MiB; 0: none.
    #[serde(default)]
    pub pmem_mib: u32,
    /// One host thread runs all CPUs with an instruction-count clock: slower, and counts repeat.
    #[serde(default)]
    pub icount: bool,
    /// Enables page-table isolation.
    #[serde(default)]
    pub pti: bool,
    /// The kernel emulates PCIDs in software (lab-only seams); only for variants with that seam.
    #[serde(default = "yes")]
    pub pcid: bool,
    /// Enables five levels of page tables. Not for scenarios: the virtual PMU walks four levels.
    #[serde(skip)]
    pub la57: bool,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl Machine {
    /// A single-node machine with defaults.
    pub fn plain(cpus: u32, memory_mib: u32) -> Machine {
        Machine {
            cpus,
            memory_mib,
            nodes: 1,
            slow_mib: 0,
            pmem_mib: 0,
            icount: false,
            pti: false,
            pcid: true,
            la57: false,
        }
    }

    /// Returns what is invalid about the configuration, if anything.
    pub fn problem(&self) -> Option<String> {
        let total = u64::from(self.memory_mib) + u64::from(self.slow_mib);
        match self {
            Machine { cpus: 0 | 9.., .. } => Some(format!("{} CPUs: must be 1 to 8", self.cpus)),
            Machine { nodes: 0 | 3.., .. } => Some(format!("{} nodes: must be 1 or 2", self.nodes)),
            Machine {
                nodes: 2, cpus: 1, ..
            } => Some("2 nodes need 2 CPUs".to_owned()),
            _ if self.memory_mib < 128 => Some(format!(
                "{} MiB of memory: the minimum is 128",
                self.memory_mib
            )),
            _ if total > 12 * 1024 => Some(format!("{total} MiB of memory: the maximum is 12288")),
            _ => None,
        }
    }
}

/// A job of a guest.
#[derive(Debug, Clone)]
pub struct Job {
    /// Names its results; letters, digits and `-`.
    pub name: String,
    /// Program and arguments, without tabs or newlines.
    pub command: Vec<String>,
}

impl Job {
    /// A line for the guest's shell, run with `-e`: it stops at the first command that fails. Needs
    /// the host's busybox among the guest's programs.
    pub fn shell(name: &str, line: &str) -> Job {
        Job {
            name: name.to_owned(),
            command: ["/bin/busybox", "sh", "-ec", line]
                .map(str::to_owned)
                .into(),
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Exit(i32),
    Signal(i32),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Exit(code) => write!(f, "status {code}"),
            Status::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// The result of one job.
#[derive(Debug)]
pub struct Done {
    pub name: String,
    pub status: Status,
    pub out: String,
    pub err: String,
}

/// A guest to run.
#[derive(Debug)]
pub struct Guest<'a> {
    pub image: &'a Path,
    pub machine: Machine,
    /// Additional words for the kernel command line.
    pub append: &'a [&'a str],
    pub programs: &'a [Program],
    /// Images for /dev/vda and so on. Guest writes are discarded, so that each run starts from the
    /// same state.
    pub disks: &'a [PathBuf],
    pub jobs: &'a [Job],
    pub limit: Duration,
    /// CPU preset for the TLB model. Without one nothing is counted, and emulation is faster.
    pub preset: Option<&'a Preset>,
    /// Also count the kernel's cache lines that several CPUs write.
    pub lines: bool,
    /// Directory for its console and results; created, and emptied first.
    pub directory: &'a Path,
}

/// The output of a guest that powered itself off.
#[derive(Debug)]
pub struct Outcome {
    pub done: Vec<Done>,
    /// Counts of the virtual PMU, by section.
    pub sections: BTreeMap<String, Section>,
    /// Values that the guest's programs measured themselves, by section (lab/guest/section.h).
    pub notes: BTreeMap<String, BTreeMap<String, f64>>,
    pub console: PathBuf,
    pub seconds: f64,
}

impl Guest<'_> {
    /// Boots the guest and waits until it ends.
    ///
    /// # Errors
    /// [`LabError::Guest`] with the end of the console if the guest panics, hangs, or returns
    /// anything other than results.
    pub fn run(&self, workspace: &Workspace) -> Result<Outcome> {
        for _ in 1..TRIES {
            match self.boot(workspace) {
                Err(error) if is_passing(&error.to_string()) => {}
                result => return result,
            }
        }
        self.boot(workspace)
    }

    fn boot(&self, workspace: &Workspace) -> Result<Outcome> {
        let stopped = self.start(workspace, None)?;
        let failed = |why: String| LabError::Guest {
            why,
            console: stopped.console.clone(),
            tail: files::last_lines(&stopped.text, 15),
        };
        if let Some(line) = stopped.text.lines().find_map(crash) {
            return Err(failed(format!("the guest's kernel crashed: {line}")).into());
        }
        if let Some(why) = &stopped.why {
            return Err(failed(why.clone()).into());
        }
        let (out, counts) = (&stopped.out, &stopped.counts);
        let done = self.jobs.iter().map(|job| result(out, &job.name));
        let done = done.collect::<Result<_, String>>().map_err(failed)?;
        let mut notes = section::read_notes(out, "notes").map_err(failed)?;
        for (name, lines) in section::read_notes(counts, "lines").map_err(failed)? {
            notes.entry(name).or_default().extend(lines);
        }
        Ok(Outcome {
            done,
            sections: section::read_all(counts)?,
            notes,
            console: stopped.console,
            seconds: stopped.seconds,
        })
    }

    /// Boots the guest and waits until it ends or its console is silent for this time.
    fn start(&self, workspace: &Workspace, silence: Option<Duration>) -> Result<Stopped> {
        let (out, counts) = (self.directory.join("out"), self.directory.join("counts"));
        files::empty_directory(self.directory)?;
        for directory in [&out, &counts] {
            fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
        }
        let console = self.directory.join("console");
        let initramfs = Initramfs::build(workspace, self)?;
        let began = Instant::now();
        let places = Places {
            initramfs: &initramfs.path,
            out: &out,
            console: &console,
            plugins: self
                .preset
                .map(|preset| preset.plugin(workspace, &self.machine, &counts))
                .into_iter()
                .chain(self.lines.then(|| lines_plugin(workspace, &counts)))
                .collect::<Result<_>>()?,
        };
        let ending = Qemu::find(workspace)?.boot(self, &places, silence)?;
        let seconds = began.elapsed().as_secs_f64();
        let text = files::read(&console)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let why = match ending {
            Ending::Off if out.join("done").is_file() => None,
            Ending::Off => Some("the guest switched itself off before it was done".to_owned()),
            Ending::Failed { status, says } => {
                let is_race = status.signal().is_some() && text.is_empty();
                let what = if is_race { RACE } else { "QEMU failed" };
                Some(format!("{what} ({status}): {}", says.trim_end()))
            }
            Ending::Silent => Some(format!(
                "{SILENT} {} s after its start",
                BOOT_LIMIT.as_secs()
            )),
            Ending::Stalled(silence) => Some(format!(
                "the guest had said nothing for {} s",
                silence.as_secs()
            )),
            Ending::TooLong => Some(format!(
                "the guest was not done after {} s",
                self.limit.as_secs()
            )),
        };
        Ok(Stopped {
            why,
            text,
            console,
            out,
            counts,
            seconds,
        })
    }
}

/// A guest that has ended.
struct Stopped {
    /// The problem, if it did not switch itself off after all jobs.
    why: Option<String>,
    /// Its console output.
    text: String,
    console: PathBuf,
    out: PathBuf,
    counts: PathBuf,
    seconds: f64,
}

/// Maximum number of starts if the emulator fails at boot.
const TRIES: usize = 4;

/// Whether a problem is a known boot failure of the emulator that a retry fixes.
fn is_passing(why: &str) -> bool {
    // About one boot in several hundred hung silently with 8 CPUs: all of them slept forever.
    [RACE, SILENT].iter().any(|it| why.contains(it))
}

/// Returns QEMU's `-plugin` argument for the plugin that counts cache lines.
fn lines_plugin(workspace: &Workspace, out: &Path) -> Result<String> {
    let library = lines_library(workspace)?;
    Ok(format!("{},out={}", library.display(), out.display()))
}

/// Returns the path of the plugin that counts cache lines.
///
/// # Errors
/// [`LabError::Missing`] if it is not built.
pub fn lines_library(workspace: &Workspace) -> Result<PathBuf> {
    workspace.plugin("libtoll_lines.so")
}

/// QEMU 10.0's memory map can be read while another CPU changes it, as the CPU that sets up PCI
/// devices at boot does. One of QEMU's assertions then fails, in 5 of several hundred boots with 4
/// CPUs.
const RACE: &str = "QEMU crashed before the guest's first process had said anything";

const SILENT: &str = "the guest's first process had said nothing";

/// Suffix of the OOM killer's line for a process that had volunteered (oom_score_adj 1000).
const OFFERED: &str = " oom_score_adj:1000";

/// Detects a console line after which results cannot be trusted.
fn crash(line: &str) -> Option<&str> {
    const SIGNS: [&str; 7] = [
        "Kernel panic - not syncing",
        "Out of memory: ",
        "BUG: ",
        "Oops: ",
        "WARNING: ",
        "possible circular locking dependency",
        "rcu: INFO: rcu_",
    ];
    let found = SIGNS.iter().filter_map(|sign| line.find(sign)).min()?;
    (!line.ends_with(OFFERED)).then_some(&line[found..])
}

/// Reads the output of one job.
fn result(out: &Path, name: &str) -> Result<Done, String> {
    let read = |suffix: &str| {
        let path = out.join(format!("{name}.{suffix}"));
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        String::from_utf8(content).map_err(|_| format!("{}: is not text", path.display()))
    };
    let status = read("status")?;
    let status =
        parse_status(&status).ok_or_else(|| format!("{name}.status: invalid status {status:?}"))?;
    Ok(Done {
        name: name.to_owned(),
        status,
        out: read("out")?,
        err: read("err")?,
    })
}

fn parse_status(text: &str) -> Option<Status> {
    let (kind, number) = text.trim_end().split_once(' ')?;
    let number = number.parse().ok()?;
    match kind {
        "exit" => Some(Status::Exit(number)),
        "signal" => Some(Status::Signal(number)),
        _ => None,
    }
}

/// Shows the console's last line while a guest runs.
fn show(bar: &indicatif::ProgressBar, name: &str, console: &Path) {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(400)..]).into_owned();
    if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
        bar.set_message(format!("{name}: {}", line.trim()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_cannot_be_is_named() {
        let plain = Machine::plain(2, 512);
        assert_eq!(plain.problem(), None);
        let says = |machine: Machine| machine.problem().unwrap_or_default();
        assert!(says(Machine { cpus: 9, ..plain }).contains("9 CPUs"));
        assert!(says(Machine { nodes: 3, ..plain }).contains("3 nodes"));
        let lonely = Machine {
            cpus: 1,
            nodes: 2,
            ..plain
        };
        assert!(says(lonely).contains("2 CPUs"));
        let slow_mib = 12 * 1024;
        assert!(says(Machine { slow_mib, ..plain }).contains("12800 MiB"));
    }

    #[test]
    fn a_status_is_exit_or_signal() {
        assert_eq!(parse_status("exit 3\n"), Some(Status::Exit(3)));
        assert_eq!(parse_status("signal 9"), Some(Status::Signal(9)));
        for garbage in ["", "exit", "exit x", "gone 1"] {
            assert_eq!(parse_status(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn crashes_are_told_from_other_lines() {
        let panic = "[    0.9] Kernel panic - not syncing: VFS: Unable to mount";
        assert_eq!(
            crash(panic),
            Some("Kernel panic - not syncing: VFS: Unable to mount")
        );
        assert!(crash("[  1.2] BUG: KASAN: use-after-free in f").is_some());
        assert!(crash("[  1.2] WARNING: CPU: 0 PID: 1 at mm/x.c:1").is_some());
        assert!(crash("[  9.9] Out of memory: Killed process 70 (model)").is_some());
        assert!(crash("[  9.9] Out of memory: Killed process 70 (a) oom_score_adj:1000").is_none());
        assert!(crash("[  9.9] Out of memory: Killed process 70 (a) oom_score_adj:0").is_some());
        assert!(crash("[  1.2] x86/mm: Checked W+X mappings: passed").is_none());
    }
}
