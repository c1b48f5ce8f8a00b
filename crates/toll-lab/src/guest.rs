// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests: a kernel, an initramfs of static programs, and a fixed QEMU command line.
//!
//! The CPU is emulated, so that counts do not depend on the host. A guest contains only what its
//! [`Guest`] lists; its commands' output comes back as files.

mod initramfs;
mod job;
mod machine;
mod plugins;
mod program;
mod qemu;
mod section;
mod survey;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::error::LabError;
use crate::files;
use crate::preset::Preset;
use crate::workspace::Workspace;
use initramfs::Initramfs;
use job::result;
pub use job::{Done, Job, Status};
pub use machine::Machine;
pub use plugins::{lines_library, pmu_library};
pub use program::Program;
use qemu::{Ending, Places};
pub use qemu::{ICOUNT, Qemu};
pub use section::{Counts, Latency, Section};
pub use survey::{Part, Survey};

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
    /// File with the content of the persistent memory, which keeps what the guest writes; without
    /// one it is empty, and its content is discarded.
    pub pmem: Option<&'a Path>,
    pub jobs: &'a [Job],
    pub limit: Duration,
    /// CPU preset for the TLB model. Without one nothing is counted, and emulation is faster.
    pub preset: Option<&'a Preset>,
    /// Also count the kernel's cache lines that several CPUs write.
    pub lines: bool,
    /// Check every access against old translations that hardware could still use.
    pub adversary: bool,
    /// Record the stores to the persistent memory, in the file [`stores`] of its directory. For a
    /// machine with one CPU.
    pub stores: bool,
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

/// The recording of a guest that ran in a directory.
pub fn stores(directory: &Path) -> PathBuf {
    directory.join("findings/stores")
}

impl Guest<'_> {
    /// Boots the guest and waits until it ends.
    ///
    /// # Errors
    /// [`LabError::Guest`] with the end of the console if the guest panics, hangs, or returns
    /// anything other than results.
    pub fn run(&self, workspace: &Workspace) -> Result<Outcome> {
        self.run_unless_silent(workspace, None)
    }

    /// Boots the guest, and ends it after its time limit as a power cut does. Returns its console
    /// output.
    ///
    /// # Errors
    /// [`LabError::Guest`] if it ended by itself.
    pub fn cut(&self, workspace: &Workspace) -> Result<String> {
        let stopped = self.start(workspace, None)?;
        match stopped.text.lines().find_map(crash) {
            None if stopped.is_too_long => Ok(stopped.text),
            line => Err(LabError::Guest {
                why: line
                    .map(str::to_owned)
                    .or(stopped.why)
                    .unwrap_or_else(|| "the guest ended by itself".to_owned()),
                tail: files::last_lines(&stopped.text, 15),
                console: stopped.console,
            }
            .into()),
        }
    }

    /// Like [`Guest::run`]; that the console is silent for this time is an error.
    pub fn run_unless_silent(
        &self,
        workspace: &Workspace,
        silence: Option<Duration>,
    ) -> Result<Outcome> {
        for _ in 1..TRIES {
            match self.boot(workspace, silence) {
                Err(error) if is_passing(&error.to_string()) => {}
                result => return result,
            }
        }
        self.boot(workspace, silence)
    }

    fn boot(&self, workspace: &Workspace, silence: Option<Duration>) -> Result<Outcome> {
        let stopped = self.start(workspace, silence)?;
        let failed = |why: String| LabError::Guest {
            why,
            console: stopped.console.clone(),
            tail: files::last_lines(&stopped.text, 15),
        };
        // A guest that hangs at boot may complain about itself.
        if let Some(why) = stopped.why.as_deref().filter(|why| is_passing(why)) {
            return Err(failed(why.to_owned()).into());
        }
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
        let of = |name| self.directory.join(name);
        let (out, counts, findings) = (of("out"), of("counts"), of("findings"));
        files::empty_directory(self.directory)?;
        for directory in [&out, &counts, &findings] {
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
                .map(|preset| plugins::pmu(workspace, preset, &self.machine, &counts))
                .into_iter()
                .chain(self.lines.then(|| plugins::lines(workspace, &counts)))
                .chain(
                    self.adversary
                        .then(|| plugins::adversary(workspace, &self.machine, &findings)),
                )
                .chain(
                    self.stores
                        .then(|| plugins::stores(workspace, &self.machine, &findings)),
                )
                .collect::<Result<_>>()?,
        };
        let ending = Qemu::find(workspace)?.boot(self, &places, silence)?;
        let seconds = began.elapsed().as_secs_f64();
        let text = files::read(&console)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_too_long = matches!(ending, Ending::TooLong);
        let why = match ending {
            Ending::Off if out.join("done").is_file() => None,
            Ending::Off => Some("the guest switched itself off before it was done".to_owned()),
            Ending::Failed { status, says } => {
                let is_race = status.signal().is_some() && !places.has_begun();
                let what = if is_race { RACE } else { "QEMU failed" };
                Some(format!("{what} ({status}): {}", says.trim_end()))
            }
            Ending::Silent(time) => Some(format!("{SILENT} {} s after its start", time.as_secs())),
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
            is_too_long,
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
    is_too_long: bool,
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

/// Shows the console's last line while a guest runs.
fn show(bar: &indicatif::ProgressBar, name: &str, console: &Path) {
    let text = fs::read(console).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(400)..]).into_owned();
    if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
        bar.set_message(format!("{name}: {}", line.trim()));
    }
}

#[cfg(test)]
mod tests;
