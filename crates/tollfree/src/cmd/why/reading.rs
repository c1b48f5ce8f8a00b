// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a process.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use toll_act::error::UserError;
use toll_linux::Root;
use toll_linux::counters::living;
use toll_linux::mappings::{Content, Folios, Identity, Survey, backing, folios, unused};
use toll_linux::proc::{self, Kind, Place, Status, smaps_each};
use toll_model::{PAGE, REGION};

use super::entry::Entry;

/// Huge pages that are read to find unused parts: 512 MiB.
const MOST: usize = 256;
/// Longest time for each of the samples.
const TIME: Duration = Duration::from_secs(1);
/// How often a process that calls exec is read again.
const ATTEMPTS: u32 = 3;
/// Time between the attempts: longer than an exec.
const PAUSE: Duration = Duration::from_millis(5);

/// What the sizes of folios show.
const SPLIT: &str = "split huge pages and sizes below 2 MiB";

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    pub what: &'static str,
    pub reason: String,
    pub fix: String,
}

impl Missing {
    pub fn new(what: &'static str, reason: impl Into<String>, fix: impl Into<String>) -> Missing {
        Missing {
            what,
            reason: reason.into(),
            fix: fix.into(),
        }
    }
}

/// Everything that was read of a process.
#[derive(Debug)]
pub struct Reading {
    pub pid: u32,
    pub name: String,
    pub place: Place,
    pub status: Option<Status>,
    pub survey: Survey,
    pub entries: Vec<Entry>,
    /// The mapped files.
    pub files: BTreeSet<String>,
    pub is_go: bool,
    /// Whether the mappings could be read.
    pub has_mappings: bool,
    pub content: Option<Content>,
    pub folios: Option<Folios>,
    pub missing: Vec<Missing>,
}

impl Reading {
    /// Reads the mappings. A process that executes another program meanwhile is read again.
    ///
    /// # Errors
    /// No such process, or it has no memory of its own.
    pub fn of(root: &Root, pid: u32) -> Result<Reading> {
        for attempt in 1..=ATTEMPTS {
            let refused = |refusal: toll_linux::counters::Refusal| UserError::UnfitFile(refusal.0);
            let name = living(root, pid).map_err(refused)?.name;
            let before = Identity::of(root, pid);
            let reading = Reading::once(root, pid, name)?;
            let after = Identity::of(root, pid).ok_or_else(|| ended(pid))?;
            let is_whole = !after.is_incomplete() || !reading.has_mappings || attempt == ATTEMPTS;
            if before == Some(after) && is_whole {
                return Ok(reading);
            }
            std::thread::sleep(PAUSE);
        }
        let message = format!("process {pid} executes other programs while it is read: try again");
        Err(UserError::UnfitFile(message).into())
    }

    fn once(root: &Root, pid: u32, name: String) -> Result<Reading> {
        let status = proc::status(root, pid).ok();
        let mut reading = Reading {
            pid,
            name,
            place: Place::of(root, pid),
            survey: Survey::read(root, pid, status.as_ref()),
            status,
            entries: Vec::new(),
            files: BTreeSet::new(),
            is_go: false,
            has_mappings: true,
            content: None,
            folios: None,
            missing: Vec::new(),
        };
        match reading.mappings(root) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => reading.forbidden(),
            Err(error) if error.kind() == ErrorKind::NotFound => reading.without_smaps(),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                return Err(ended(pid).into());
            }
            Err(error) => return Err(error).with_context(|| format!("process {pid}")),
        }
        if reading.has_mappings && !reading.survey.sees_pages() {
            let fix = "a kernel with CONFIG_PROC_PAGE_MONITOR, and /proc as the kernel has it";
            let reason = format!("/proc/{pid}/pagemap cannot be read");
            reading
                .missing
                .push(Missing::new("edges of mappings", reason, fix));
        }
        Ok(reading)
    }

    fn mappings(&mut self, root: &Root) -> io::Result<()> {
        let (survey, entries) = (&self.survey, &mut self.entries);
        let (files, is_go) = (&mut self.files, &mut self.is_go);
        smaps_each(root, self.pid, |smap| {
            *is_go |= smap.mapping.is_go_heap() && !smap.mapping.shared;
            if let Kind::File(path) = smap.mapping.kind() {
                if !files.contains(path) {
                    files.insert(path.to_owned());
                }
            }
            entries.push(Entry::new(survey, smap));
        })
    }

    fn forbidden(&mut self) {
        let owner = self.status.as_ref().map(|status| status.uid[0]);
        let owner = owner.map_or(String::new(), |uid| format!(" (user {uid})"));
        let fix = format!(
            "run it as the user of the process{owner}, or as root with CAP_SYS_PTRACE; in a container: --cap-add SYS_PTRACE"
        );
        self.unreadable("not permitted", fix);
    }

    fn without_smaps(&mut self) {
        let fix = "a kernel with CONFIG_PROC_PAGE_MONITOR";
        self.unreadable("does not exist", fix.to_owned());
    }

    fn unreadable(&mut self, why: &str, fix: String) {
        self.has_mappings = false;
        self.entries.clear();
        let reason = format!("/proc/{}/smaps: {why}", self.pid);
        self.missing.push(Missing::new("mappings", reason, fix));
    }

    /// Samples the content and the sizes of pages.
    pub fn look_closer(&mut self, root: &Root) {
        let inner: Vec<_> = self.entries.iter().filter_map(Entry::inner).collect();
        let has_huge = inner.iter().any(|it| it.huge > 0);
        if inner.is_empty() || !root.is_system() {
            return;
        }
        let Some(backing) = backing(root, self.pid, &inner) else {
            if has_huge {
                let reason = "which memory is huge cannot be told for parts of mappings";
                let missing = Missing::new("unused parts of huge pages", reason, "Linux 6.7");
                self.missing.push(missing);
            }
            self.missing.push(Missing::new(
                SPLIT,
                "the regions with 4 KiB pages cannot be told",
                "Linux 6.7 with CONFIG_PROC_PAGE_MONITOR",
            ));
            return;
        };
        if !backing.huge.is_empty() {
            self.read_content(backing.huge);
        }
        if !backing.small.is_empty() {
            self.read_folios(root, backing.small);
        }
    }

    fn read_content(&mut self, regions: Vec<u64>) {
        match unused(self.pid, regions, MOST, TIME) {
            Ok(content) => self.content = Some(content),
            Err(error) => self.missing.push(Missing::new(
                "unused parts of huge pages",
                format!("its memory cannot be read: {}", short(&error)),
                "root, or CAP_SYS_PTRACE (in a container: --cap-add SYS_PTRACE); kernel.yama.ptrace_scope of 1 or more forbids it to others",
            )),
        }
    }

    fn read_folios(&mut self, root: &Root, regions: Vec<u64>) {
        match folios(root, self.pid, regions, TIME) {
            Ok(folios) => self.folios = Some(folios),
            Err(_) => self.missing.push(Missing::new(
                SPLIT,
                "the numbers of page frames are not visible",
                "root with CAP_SYS_ADMIN (in a container: --cap-add SYS_ADMIN), and /proc/kpageflags (CONFIG_PROC_PAGE_MONITOR)",
            )),
        }
    }

    /// Sum over the mappings.
    pub fn sum(&self, of: impl Fn(&Entry) -> u64) -> u64 {
        self.entries.iter().map(of).sum()
    }

    /// Resident memory, with hugetlb; by the kernel's count where mappings cannot be read.
    pub fn resident(&self) -> u64 {
        match self.has_mappings {
            true => self.sum(|entry| entry.resident),
            false => self.status.as_ref().and_then(|it| it.rss).unwrap_or(0),
        }
    }

    /// Bytes of split huge pages that are still in memory and mapped nowhere, extrapolated.
    pub fn retained(&self) -> Option<u64> {
        let folios = self.folios.as_ref().filter(|folios| folios.read > 0)?;
        let share = folios.regions as f64 / folios.read as f64;
        Some((folios.retained as f64 * share) as u64)
    }

    /// (page size, bytes) of the memory in 4 KiB entries by the size of its folio, extrapolated;
    /// single pages left out.
    pub fn folio_sizes(&self) -> Vec<(u64, u64)> {
        let Some(folios) = self.folios.as_ref().filter(|folios| folios.read > 0) else {
            return Vec::new();
        };
        let share = folios.regions as f64 / folios.read as f64;
        let sizes = folios.bytes.iter().enumerate().skip(1);
        sizes
            .filter(|(_, bytes)| **bytes > 0)
            .map(|(order, bytes)| (PAGE << order, (*bytes as f64 * share) as u64))
            .collect()
    }

    /// Bytes of the huge pages that could be read.
    pub fn content_bytes(&self) -> u64 {
        let regions = self.content.as_ref().map_or(0, |content| content.regions);
        regions as u64 * REGION
    }
}

/// An error without the number of the operating system.
fn short(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_lowercase(),
        None => text,
    }
}

fn ended(pid: u32) -> UserError {
    UserError::UnfitFile(format!("process {pid} has ended"))
}
