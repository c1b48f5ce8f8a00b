// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states that a crash of a kernel can leave: a guest changes files in persistent memory, and
//! every store to it, flush and fence is recorded.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use toll_image::crash::lines::{Coverage, Lines};
use toll_image::crash::random::Random;
use toll_image::crash::trace::{Event, Trace};
use toll_image::layout::PAGE;
use toll_image::medium::Medium;
use toll_image::ops::Fs;
use toll_image::recover;

use super::recording::{Record, Recording};
use crate::cmd::persistent::{Files, PMEM_MIB, Tally, range, start_of_range};
use crate::cmd::power_cuts::new_file;
use crate::error::LabError;
use crate::files;
use crate::guest::{self, Guest, Job, Machine, Program, Status};
use crate::kernel::{Built, Variant, build};
use crate::output;
use crate::workspace::Workspace;

/// States of one point in time.
const MOST: usize = 16;
/// States that the kernel mounts too.
const MOUNTED: usize = 4;
/// Bytes of a cache line.
const LINE: u64 = 64;
const WITHIN: Duration = Duration::from_secs(1200);

/// What was examined.
#[derive(Debug, Default, Serialize)]
pub struct Figures {
    pub variant: String,
    /// Operations of the guest, and what it did to the memory.
    pub operations: u64,
    pub stores: u64,
    pub flushes: u64,
    pub fences: u64,
    /// States after a crash, and points in time where they are a sample.
    pub crash_states: u64,
    pub sampled: u64,
    /// States that the kernel has mounted.
    pub mounted: u64,
    /// States that are wrong. The first ends the search.
    pub lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub violation: Option<String>,
}

impl Figures {
    /// # Errors
    /// [`LabError::Test`] for a wrong state.
    pub fn conclude(&self) -> Result<()> {
        match &self.violation {
            None => Ok(()),
            Some(what) => Err(LabError::Test(what.clone()).into()),
        }
    }

    pub fn print(&self) {
        println!(
            "{} operations of {}: {} stores, {} flushes, {} fences; {} states, {} of them wrong; a \
             sample of the states of {} points in time; {} mounted by the kernel",
            self.operations,
            self.variant,
            self.stores,
            self.flushes,
            self.fences,
            self.crash_states,
            self.lost,
            self.sampled,
            self.mounted
        );
    }
}

/// Records `operations` of a kernel, and examines the states that a crash can leave. With `plant`, of
/// a kernel that has this bug.
///
/// # Errors
/// The guest fails, or its recording is not complete.
pub fn examine(
    workspace: &Workspace,
    variant: &str,
    operations: u32,
    plant: Option<&str>,
) -> Result<Figures> {
    let lab = Lab::prepare(workspace, variant)?;
    let bar = output::progress("crash states: a guest changes files");
    let first = lab.record(operations, plant)?;
    bar.set_message("crash states: of the kernel's stores");
    let recording = guest::stores(&lab.directory);
    let opened = Recording::open(&recording).with_context(|| recording.display().to_string())?;
    let start = start_of_range(&first)?;
    let mut search = Search::new(first[start..].to_vec(), start as u64);
    search.figures.variant = variant.to_owned();
    search.follow_all(opened)?;
    if search.figures.lost == 0 {
        search.is_complete(&range(&lab.pmem)?)?;
        bar.set_message("crash states: the kernel mounts some");
        let header = &first[..start];
        for sample in std::mem::take(&mut search.samples) {
            search.mounted(sample, |image| lab.mount(&[header, image].concat()))?;
        }
    }
    // Hundreds of MiB.
    let _ = fs::remove_file(&recording);
    Ok(search.figures)
}

/// The guests.
struct Lab<'a> {
    workspace: &'a Workspace,
    built: Built,
    programs: Vec<Program>,
    directory: PathBuf,
    pmem: PathBuf,
    _lock: fs::File,
}

impl Lab<'_> {
    fn prepare<'a>(workspace: &'a Workspace, variant: &str) -> Result<Lab<'a>> {
        let variant = Variant::find(workspace, variant, &[])?;
        let built = build(workspace, &variant)?;
        let mut programs = Program::installed("busybox")?;
        programs.extend(Program::installed("tollfree")?);
        programs.push(Program::compiled(workspace, "persist")?);
        let directory = workspace.cache.join("crash-states");
        let lock = files::lock(&files::with_suffix(&directory, ".lock"))?;
        let pmem = directory.with_extension("pmem");
        Ok(Lab {
            workspace,
            built,
            programs,
            directory,
            pmem,
            _lock: lock,
        })
    }

    /// Returns the memory before what is recorded.
    fn record(&self, operations: u32, plant: Option<&str>) -> Result<Vec<u8>> {
        new_file(&self.pmem)?;
        self.run("tollfree morsel mkfs /dev/pmem0", false)?;
        let mut first = read(&self.pmem)?;
        let start = start_of_range(&first)?;
        soil(&mut first[start..])?;
        fs::write(&self.pmem, &first).with_context(|| self.pmem.display().to_string())?;
        self.run(&Files::script_to(operations, plant), true)?;
        Ok(first)
    }

    /// Mounts and unmounts a state. Returns what the kernel has made of it.
    fn mount(&self, memory: &[u8]) -> Result<Vec<u8>> {
        fs::write(&self.pmem, memory).with_context(|| self.pmem.display().to_string())?;
        self.run(&Files::reading(), false)?;
        Ok(range(&self.pmem)?)
    }

    fn run(&self, script: &str, stores: bool) -> Result<()> {
        let jobs = [Job::shell("work", script)];
        let guest = Guest {
            image: &self.built.image,
            machine: Machine {
                pmem_mib: PMEM_MIB,
                ..Machine::plain(1, 512)
            },
            append: &[],
            programs: &self.programs,
            disks: &[],
            pmem: Some(&self.pmem),
            jobs: &jobs,
            limit: WITHIN,
            preset: None,
            lines: false,
            adversary: false,
            stores,
            directory: &self.directory,
        };
        let outcome = guest.run(self.workspace)?;
        let console = read(&outcome.console)?;
        let console = String::from_utf8_lossy(&console);
        Files::default()
            .note(&console, &mut Tally::default())
            .map_err(LabError::Test)?;
        let work = &outcome.done[0];
        if work.status != Status::Exit(0) {
            bail!(LabError::Test(format!("{}: {}", work.status, work.err)));
        }
        Ok(())
    }
}

/// Fills all free pages with bytes that mean nothing, as earlier use leaves them: else a lost store of
/// zeros would make no difference.
fn soil(range: &mut [u8]) -> Result<()> {
    let fs = Fs::mount(range.to_vec()).context("the new range")?;
    for (number, page) in (0..).zip(range.chunks_exact_mut(PAGE as usize)) {
        if !fs.owned().has(number) {
            page.fill(0xa5);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// A state, with what may be there.
type Sample = (Vec<u8>, Files);

/// A search in progress.
struct Search {
    /// Offset of the range in the memory.
    start: u64,
    /// The range as the guest sees it, and what of it is persistent.
    memory: Trace,
    durable: Trace,
    lines: Lines,
    files: Files,
    /// Something has changed since the last crash.
    is_new: bool,
    random: Random,
    samples: Vec<Sample>,
    figures: Figures,
}

impl Search {
    fn new(range: Vec<u8>, start: u64) -> Search {
        Search {
            start,
            memory: Trace::new(range.clone()),
            durable: Trace::new(range),
            lines: Lines::default(),
            files: Files::default(),
            is_new: true,
            random: Random::new(1),
            samples: Vec::new(),
            figures: Figures::default(),
        }
    }

    /// Follows a recording until its end or the first wrong state.
    fn follow_all(&mut self, records: impl Iterator<Item = std::io::Result<Record>>) -> Result<()> {
        for record in records {
            let record = record.context("the recording of stores")?;
            if let Err(what) = self.follow(record)? {
                self.figures.lost = 1;
                self.figures.violation = Some(what);
                return Ok(());
            }
        }
        if let Err(what) = self.crashes() {
            self.figures.lost = 1;
            self.figures.violation = Some(what);
        }
        Ok(())
    }

    /// The inner error is a wrong state.
    fn follow(&mut self, record: Record) -> Result<Result<(), String>> {
        match record {
            Record::Store {
                offset,
                value,
                size,
            } => {
                let Some(offset) = offset.checked_sub(self.start) else {
                    return Ok(Ok(()));
                };
                self.figures.stores += 1;
                self.memory.store(offset, &value[..size])?;
            }
            Record::Flush { offset } => {
                let Some(offset) = offset.checked_sub(self.start) else {
                    return Ok(Ok(()));
                };
                self.figures.flushes += 1;
                self.memory.flush(offset..offset + LINE)?;
            }
            Record::Fence => {
                self.figures.fences += 1;
                if let Err(what) = self.crashes() {
                    return Ok(Err(what));
                }
                self.memory.fence()?;
            }
            Record::Step(what, version) => return self.step(what, version),
        }
        for event in std::mem::take(&mut self.memory.events) {
            self.is_new |= matches!(event, Event::Store { .. });
            self.lines.follow(&event, &mut self.durable);
        }
        self.memory.commit();
        self.durable.commit();
        Ok(Ok(()))
    }

    /// A step of lab/guest/persist.c: `b` or `d`, and the name of the file.
    fn step(&mut self, what: u64, version: u64) -> Result<Result<(), String>> {
        let [name, kind] = [what as u8, (what >> 8) as u8].map(char::from);
        let begins = match kind {
            'b' => true,
            'd' => false,
            _ => bail!("the recording of stores has an unknown step: {what:#x}"),
        };
        self.files.step(begins, &name.to_string(), Some(version));
        if begins {
            return Ok(Ok(()));
        }
        self.figures.operations += 1;
        self.is_new = true;
        Ok(self.crashes())
    }

    /// All states of this point in time, or a sample of them.
    fn crashes(&mut self) -> Result<(), String> {
        if !std::mem::take(&mut self.is_new) {
            return Ok(());
        }
        let (choices, coverage) = self.lines.choices(MOST, &mut self.random);
        self.figures.sampled += u64::from(coverage != Coverage::All);
        let mark = self.durable.mark();
        for choice in choices {
            self.lines.apply(&choice, &mut self.durable);
            self.take_sample();
            let outcome = self.state();
            self.durable.rewind(mark);
            outcome?;
        }
        Ok(())
    }

    /// Keeps a state for the kernel: in the end each state with the same probability.
    fn take_sample(&mut self) {
        self.figures.crash_states += 1;
        let sample = || (self.durable.bytes().clone(), self.files.clone());
        if self.samples.len() < MOUNTED {
            self.samples.push(sample());
            return;
        }
        let place = self.random.below(self.figures.crash_states) as usize;
        if place < MOUNTED {
            self.samples[place] = sample();
        }
    }

    /// One state: it is recovered and compared.
    fn state(&mut self) -> Result<(), String> {
        let mut files = self.files.clone();
        let survey = recover(&mut self.durable).map_err(|error| error.to_string())?;
        let outcome = files.check_files(&self.durable, &survey);
        outcome.map(drop).map_err(|what| {
            let done = self.figures.operations;
            format!("a crash after {done} operations: {what}")
        })
    }

    /// What the recording has missed would show as a difference.
    fn is_complete(&self, memory: &[u8]) -> Result<()> {
        let differs = |(ours, theirs): (&u8, &u8)| ours != theirs;
        let ours = self.memory.bytes();
        match ours.iter().zip(memory).position(differs) {
            None => Ok(()),
            Some(at) => bail!("the recording of stores lacks one to byte {at:#x} of the range"),
        }
    }

    /// What a kernel makes of a state is compared, too.
    fn mounted(
        &mut self,
        (image, mut files): Sample,
        mount: impl FnOnce(&[u8]) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let recovered = mount(&image)?;
        self.figures.mounted += 1;
        let outcome = toll_image::survey(&recovered).map_err(|error| error.to_string());
        let outcome = outcome.and_then(|survey| match survey.findings.list.first() {
            Some(finding) => Err(format!("at {:#x}: {}", finding.offset, finding.what)),
            None => files.check_files(&recovered, &survey),
        });
        if let Err(what) = outcome {
            self.figures.lost += 1;
            self.figures.violation = Some(format!("after a mount by the kernel: {what}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
