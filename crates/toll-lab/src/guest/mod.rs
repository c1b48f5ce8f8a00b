// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests: a kernel, an initramfs of static programs, and a fixed QEMU command line.
//!
//! The CPU is emulated, so that counts do not depend on the host. Nothing of the host is in
//! the guest but what a [`Guest`] names; what its commands write comes back as files.

mod initramfs;
mod qemu;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::error::LabError;
use crate::files;
use crate::house::House;
use crate::preset::Preset;
use initramfs::Initramfs;
use qemu::{Ending, Places, Qemu};

/// The emulated machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    pub cpus: u32,
    pub memory_mib: u32,
}

/// A file of the host that the guest has too.
#[derive(Debug, Clone)]
pub struct Program {
    pub host: PathBuf,
    /// Path in the guest.
    pub guest: String,
}

/// What a guest does.
#[derive(Debug, Clone)]
pub struct Job {
    /// Names its results; letters, digits and `-`.
    pub name: String,
    /// Program and arguments; none holds a tab or a newline.
    pub command: Vec<String>,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Exit(i32),
    Signal(i32),
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
    pub jobs: &'a [Job],
    pub limit: Duration,
    /// The CPU whose TLBs are counted; without one nothing is, and emulation is faster.
    pub preset: Option<&'a Preset>,
    /// Where its console and results go; made, and emptied before.
    pub folder: &'a Path,
}

/// What came back from a guest that switched itself off.
#[derive(Debug)]
pub struct Outcome {
    pub done: Vec<Done>,
    /// What the virtual PMU counted, by section.
    pub sections: BTreeMap<String, Section>,
    pub console: PathBuf,
    pub seconds: f64,
}

/// The counts of one section: by counter, of each CPU.
#[derive(Debug, Clone, Deserialize)]
pub struct Section {
    cpus: Vec<BTreeMap<String, u64>>,
}

impl Section {
    /// A counter's sum over all CPUs.
    ///
    /// # Panics
    /// If the plugin has no such counter.
    pub fn total(&self, counter: &str) -> u64 {
        self.cpus.iter().map(|cpu| cpu[counter]).sum()
    }
}

impl Guest<'_> {
    /// Boots it and waits for its end.
    ///
    /// # Errors
    /// [`LabError::Guest`] with the console's end: it panicked, hung, or gave back something else than results.
    pub fn run(&self, house: &House) -> Result<Outcome> {
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
            plugin: self
                .preset
                .map(|preset| preset.plugin(house, &counts))
                .transpose()?,
        };
        let ending = Qemu::find(house)?.boot(self, &places)?;
        let seconds = began.elapsed().as_secs_f64();
        let text =
            String::from_utf8_lossy(&files::read(&console)?.unwrap_or_default()).into_owned();
        let failed = |why: String| LabError::Guest {
            why,
            console: console.clone(),
            tail: files::last_lines(&text, 15),
        };
        if let Some(line) = text.lines().find_map(crash) {
            return Err(failed(format!("the guest's kernel crashed: {line}")).into());
        }
        match ending {
            Ending::Ended(status) if status.success() => {}
            Ending::Ended(status) => return Err(failed(format!("QEMU failed ({status})")).into()),
            Ending::TooLong => {
                let why = format!("the guest was not done after {} s", self.limit.as_secs());
                return Err(failed(why).into());
            }
        }
        if !out.join("done").is_file() {
            return Err(
                failed("the guest switched itself off before it was done".to_owned()).into(),
            );
        }
        let done = self.jobs.iter().map(|job| result(&out, &job.name));
        let done = done.collect::<Result<_, String>>().map_err(failed)?;
        Ok(Outcome {
            done,
            sections: sections(&counts)?,
            console,
            seconds,
        })
    }
}

/// What the plugin wrote.
fn sections(folder: &Path) -> Result<BTreeMap<String, Section>> {
    let mut found = BTreeMap::new();
    for file in files::below(folder)? {
        let path = folder.join(&file);
        let section = serde_json::from_str(&files::read_text(&path)?)
            .with_context(|| format!("{}: is no file of counts", path.display()))?;
        found.insert(file.with_extension("").display().to_string(), section);
    }
    Ok(found)
}

/// A line that says that the kernel cannot be believed any more.
fn crash(line: &str) -> Option<&str> {
    const SIGNS: [&str; 6] = [
        "Kernel panic - not syncing",
        "BUG: ",
        "Oops: ",
        "WARNING: ",
        "possible circular locking dependency",
        "rcu: INFO: rcu_",
    ];
    let found = SIGNS.iter().filter_map(|sign| line.find(sign)).min()?;
    Some(&line[found..])
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
        assert!(crash("[  1.2] x86/mm: Checked W+X mappings: passed").is_none());
    }
}
