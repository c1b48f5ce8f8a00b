// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests: a kernel, an initramfs of static programs, and a fixed QEMU command line.
//!
//! The CPU is emulated, so that counts do not depend on the host. Nothing of the host is in
//! the guest but what a [`Guest`] names; what its commands write comes back as files.

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
use crate::house::House;
use crate::preset::Preset;
use initramfs::Initramfs;
pub use program::Program;
pub use qemu::Qemu;
use qemu::{BOOT_LIMIT, Ending, Places};
pub use section::{Counts, Latency, Section};
pub use survey::{Part, Survey};

/// The emulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// 1 to 8.
    pub cpus: u32,
    /// The memory of node 0, MiB; of both nodes together if `nodes` is 2.
    pub memory_mib: u32,
    /// 1, or 2 that share CPUs and memory equally.
    #[serde(default = "one")]
    pub nodes: u32,
    /// One more node without CPUs, whose memory is slower: MiB; 0: there is none.
    #[serde(default)]
    pub slow_mib: u32,
    /// Persistent memory (/dev/pmem0, with DAX), MiB; 0: there is none.
    #[serde(default)]
    pub pmem_mib: u32,
    /// One host thread runs all CPUs by an instruction count: slower, and counts repeat.
    #[serde(default)]
    pub icount: bool,
    /// With page-table isolation.
    #[serde(default)]
    pub pti: bool,
    /// The kernel uses PCIDs, in software (lab-only seams): only on variants that have them.
    #[serde(default = "yes")]
    pub pcid: bool,
    /// Five levels of page tables: no scenario's, as the virtual PMU walks four.
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
    /// A machine of one node with nothing special.
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

    /// What no guest can be, in words.
    pub fn problem(&self) -> Option<String> {
        let total = u64::from(self.memory_mib) + u64::from(self.slow_mib);
        match self {
            Machine { cpus: 0 | 9.., .. } => Some(format!("{} CPUs: 1 to 8 can be", self.cpus)),
            Machine { nodes: 0 | 3.., .. } => Some(format!("{} nodes: 1 or 2 can be", self.nodes)),
            Machine {
                nodes: 2, cpus: 1, ..
            } => Some("2 nodes need 2 CPUs".to_owned()),
            _ if self.memory_mib < 128 => Some(format!(
                "{} MiB of memory: 128 are the least",
                self.memory_mib
            )),
            _ if total > 12 * 1024 => Some(format!("{total} MiB of memory: 12288 are the most")),
            _ => None,
        }
    }
}

/// What a guest does.
#[derive(Debug, Clone)]
pub struct Job {
    /// Names its results; letters, digits and `-`.
    pub name: String,
    /// Program and arguments; none holds a tab or a newline.
    pub command: Vec<String>,
}

impl Job {
    /// A line for the guest's shell, which ends with the first command that fails. Needs the
    /// host's busybox among the guest's programs.
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

/// One job's result.
#[derive(Debug)]
pub struct Done {
    pub name: String,
    pub status: Status,
    pub out: String,
    pub err: String,
}

/// A guest that is to be run.
#[derive(Debug)]
pub struct Guest<'a> {
    pub image: &'a Path,
    pub machine: Machine,
    /// More words for the kernel's command line.
    pub append: &'a [&'a str],
    pub programs: &'a [Program],
    /// Images of /dev/vda and on. What the guest writes is forgotten with it, so that each run
    /// begins with the same.
    pub disks: &'a [PathBuf],
    pub jobs: &'a [Job],
    pub limit: Duration,
    /// The CPU whose TLBs are counted; without one nothing is, and emulation is faster.
    pub preset: Option<&'a Preset>,
    /// Count the cache lines of the kernel that several CPUs write, too.
    pub lines: bool,
    /// Where its console and results go; made, and emptied before.
    pub folder: &'a Path,
}

/// What came back from a guest that switched itself off.
#[derive(Debug)]
pub struct Outcome {
    pub done: Vec<Done>,
    /// What the virtual PMU counted, by section.
    pub sections: BTreeMap<String, Section>,
    /// What the guest's programs measured themselves, by section (lab/guest/section.h).
    pub notes: BTreeMap<String, BTreeMap<String, f64>>,
    pub console: PathBuf,
    pub seconds: f64,
}

impl Guest<'_> {
    /// Boots it and waits for its end.
    ///
    /// # Errors
    /// [`LabError::Guest`] with the console's end: it panicked, hung, or gave back something else than results.
    pub fn run(&self, house: &House) -> Result<Outcome> {
        for _ in 1..TRIES {
            match self.boot(house) {
                Err(error) if is_passing(&error.to_string()) => {}
                result => return result,
            }
        }
        self.boot(house)
    }

    fn boot(&self, house: &House) -> Result<Outcome> {
        let stopped = self.start(house, None)?;
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

    /// Boots it and waits until it has ended, or its console was silent for this time.
    fn start(&self, house: &House, silence: Option<Duration>) -> Result<Stopped> {
        let (out, counts) = (self.folder.join("out"), self.folder.join("counts"));
        files::empty_folder(self.folder)?;
        for folder in [&out, &counts] {
            fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        let console = self.folder.join("console");
        let initramfs = Initramfs::build(house, self)?;
        let began = Instant::now();
        let places = Places {
            initramfs: &initramfs.path,
            out: &out,
            console: &console,
            plugins: self
                .preset
                .map(|preset| preset.plugin(house, &self.machine, &counts))
                .into_iter()
                .chain(self.lines.then(|| lines_plugin(house, &counts)))
                .collect::<Result<_>>()?,
        };
        let ending = Qemu::find(house)?.boot(self, &places, silence)?;
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

/// How often a guest is started if the emulator fails at boot.
const TRIES: usize = 4;

/// Whether a problem is a known boot failure of the emulator that a retry passes.
fn is_passing(why: &str) -> bool {
    // Silent was one in some hundred boots, with 8 CPUs: all of them slept for ever.
    [RACE, SILENT].iter().any(|it| why.contains(it))
}

/// QEMU's `-plugin` argument that counts cache lines.
fn lines_plugin(house: &House, out: &Path) -> Result<String> {
    let library = lines_library(house)?;
    Ok(format!("{},out={}", library.display(), out.display()))
}

/// The plugin that counts cache lines.
///
/// # Errors
/// [`LabError::Missing`] if it is not built.
pub fn lines_library(house: &House) -> Result<PathBuf> {
    house.plugin("libtoll_lines.so")
}

/// QEMU 10.0's map of devices can be read while another CPU changes it, as one does that sets up
/// PCI devices at boot; then one of its assertions fails, in 5 of some hundred boots with 4 CPUs.
const RACE: &str = "QEMU crashed before the guest's first process had said anything";

const SILENT: &str = "the guest's first process had said nothing";

/// How the line ends that says that the OOM killer took a process that had offered itself.
const OFFERED: &str = " oom_score_adj:1000";

/// A line that says that the kernel, or what ran, cannot be believed any more.
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

/// What one job gave back.
fn result(out: &Path, name: &str) -> Result<Done, String> {
    let read = |suffix: &str| {
        let path = out.join(format!("{name}.{suffix}"));
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        String::from_utf8(content).map_err(|_| format!("{}: is no text", path.display()))
    };
    let status = read("status")?;
    let status =
        parse_status(&status).ok_or_else(|| format!("{name}.status says {status:?}: no status"))?;
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
