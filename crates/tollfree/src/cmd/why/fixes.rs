// SPDX-License-Identifier: MIT OR Apache-2.0
//! What changes each reason, on this machine and for this program.

mod pace;

use std::collections::{BTreeMap, BTreeSet};

use toll_act::permanent::Candidate;
use toll_linux::Root;
use toll_linux::mappings::Machine;
use toll_linux::proc;
use toll_model::eligibility::Reason;
use toll_model::numbers;

pub use pace::Pace;

use super::program::Found;
use super::reading::Reading;

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// The candidate for shared memory, and the one for a program that switches huge pages off.
const SHARED: &str = "postgres-huge-pages";
const SWITCH: &str = "redis-thp";

/// The fix for each reason that a process has.
pub struct Fixes {
    pub pace: Option<Pace>,
    texts: BTreeMap<Reason, String>,
}

impl Fixes {
    pub fn new(root: &Root, reading: &Reading, program: &Found) -> Fixes {
        let facts = Facts::new(root, reading, program);
        let shares = reading.entries.iter().flat_map(|entry| &entry.shares);
        let reasons: BTreeSet<Reason> = match reading.has_mappings {
            true => shares.map(|share| share.reason).collect(),
            false => BTreeSet::from([Reason::Unread]),
        };
        let text = |reason: Reason| Some((reason, facts.fix(reason)?));
        Fixes {
            texts: reasons.into_iter().filter_map(text).collect(),
            pace: facts.pace,
        }
    }

    /// Returns the fix; `None` if there is nothing to change.
    pub fn of(&self, reason: Reason) -> Option<&str> {
        self.texts.get(&reason).map(String::as_str)
    }
}

/// What the fixes depend on.
struct Facts {
    pace: Option<Pace>,
    /// Changes that the program offers: for private memory, shared memory, and its own switch.
    private: Option<String>,
    shared: Option<String>,
    switch: Option<String>,
    /// The ancestor that switched huge pages off before the process started.
    switched_off_by: Option<(u32, String)>,
    pid: u32,
    /// The setting of 2 MiB pages alone forbids them.
    size_is_never: bool,
    max_ptes_none: Option<u64>,
    group: Option<String>,
    machine: Machine,
}

impl Facts {
    fn new(root: &Root, reading: &Reading, program: &Found) -> Facts {
        let machine = Machine::read(root);
        let thp = reading.survey.thp.as_ref();
        let limit = reading.survey.limit.as_ref();
        let advises = program.settings.iter().any(|setting| setting.advises);
        let change = |is_it: fn(&str) -> bool| {
            let mut candidates = program.candidates.iter();
            let found = candidates.find(|candidate| is_it(candidate.name));
            found.map(described)
        };
        Facts {
            pace: Pace::of(root, reading, &machine),
            private: change(|name| name != SHARED).filter(|_| !advises),
            shared: change(|name| name == SHARED),
            switch: change(|name| name == SWITCH),
            switched_off_by: switched_off_by(root, reading),
            pid: reading.pid,
            size_is_never: thp.is_some_and(|thp| thp.mode != thp.region_mode()),
            max_ptes_none: thp.and_then(|thp| thp.max_ptes_none),
            group: limit.map(|limit| limit.directory().display().to_string()),
            machine,
        }
    }

    fn fix(&self, reason: Reason) -> Option<String> {
        Some(match reason {
            Reason::Kernel | Reason::Copied => return None,
            Reason::File => "huge only on file systems with large folios; a big file that is only read: `tollfree run --morsel FILE -- PROGRAM`".to_owned(),
            Reason::Short => "allocate larger pieces: only an aligned 2 MiB inside one mapping can be huge".to_owned(),
            Reason::Unaligned => "start the mapping at a multiple of 2 MiB, or make its length one (Linux 6.7 and later then align it)".to_owned(),
            Reason::Offset => "map the file so that address and file offset are equal modulo 2 MiB".to_owned(),
            Reason::Edge => "start and end mappings at multiples of 2 MiB".to_owned(),
            Reason::Missing => "a kernel with CONFIG_TRANSPARENT_HUGEPAGE; in a container also /sys, as the kernel has it".to_owned(),
            Reason::Disabled => self.disabled(),
            Reason::AdvisedNever => "the program advised against huge pages (MADV_NOHUGEPAGE), or an allocator did: remove that, or advise MADV_HUGEPAGE".to_owned(),
            Reason::Userfaultfd => "huge pages come once userfaultfd is unregistered (the end of a migration or snapshot)".to_owned(),
            Reason::Never => self.never(),
            Reason::NotAdvised => self.not_advised(),
            Reason::Shared => format!("as root: `echo advise > {THP}/shmem_enabled`, then madvise(MADV_HUGEPAGE) in the program{}", or(&self.shared)),
            Reason::Tmpfs => "as root: `mount -o remount,huge=within_size` on its mount, before the file is written".to_owned(),
            Reason::SharedNotAdvised => format!("madvise(MADV_HUGEPAGE) on it, before it is touched{}", or(&self.shared)),
            Reason::Refused => "prctl(PR_SET_THP_DISABLE) with the exception for advised memory (Linux 6.18), DAX, or a stack that is being set up".to_owned(),
            Reason::Sparse => self.sparse(),
            Reason::GroupFull => format!("raise the memory limit of {}, or use less", self.group.as_deref().unwrap_or("its cgroup")),
            Reason::NoKhugepaged => format!("as root: `echo 4096 > {THP}/khugepaged/pages_to_scan`; at once: madvise(MADV_COLLAPSE) in the program"),
            Reason::Waiting => self.waiting(),
            Reason::Unread => "see below what could not be read".to_owned(),
        })
    }

    fn disabled(&self) -> String {
        let by = match &self.switched_off_by {
            Some((pid, name)) => {
                format!("inherited: process {pid} ({name}) has it too; start the program without it")
            }
            None => "the process called prctl(PR_SET_THP_DISABLE), or its starter did: start it without that".to_owned(),
        };
        format!("{by}{}", or(&self.switch))
    }

    fn never(&self) -> String {
        let file = match self.size_is_never {
            true => "hugepages-2048kB/enabled",
            false => "enabled",
        };
        let advice = self.private.as_deref();
        let advice = advice.unwrap_or("madvise(MADV_HUGEPAGE) in the program");
        format!("as root: `echo madvise > {THP}/{file}`, then {advice}")
    }

    fn not_advised(&self) -> String {
        let own = "madvise(MADV_HUGEPAGE) in the program";
        let first = match &self.private {
            Some(change) => format!("{change}, or {own}"),
            None => own.to_owned(),
        };
        let pid = self.pid;
        format!("{first}; `tollfree tune --pid {pid}` measures what that gains")
    }

    fn sparse(&self) -> String {
        let limit = self.max_ptes_none.unwrap_or(0);
        format!(
            "khugepaged leaves regions with more than {} alone: as root, `echo 511 > {THP}/khugepaged/max_ptes_none` (costs memory)",
            numbers::of(limit as usize, "missing page")
        )
    }

    /// Faults make no huge page where a page table is, so only khugepaged does.
    fn waiting(&self) -> String {
        let pace = self.pace.as_ref().map(Pace::text);
        let pace = pace.unwrap_or_else(|| "khugepaged makes it huge".to_owned());
        let all = self.machine.allocated + self.machine.fell_back;
        let fell_back = match self.machine.fell_back {
            0 => String::new(),
            some => format!(
                " ({} of this machine's huge faults since boot did)",
                numbers::percent(some as f64 / all as f64)
            ),
        };
        format!(
            "{pace}. At once: madvise(MADV_COLLAPSE) in the program. It was touched before it was eligible, found no free block{fell_back}, or was split"
        )
    }
}

/// A change, with the line to paste unless its description has it.
fn described(candidate: &Candidate) -> String {
    let mut lines = candidate.how.lines();
    let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    match line.filter(|_| !candidate.change.contains('=')) {
        Some(line) => format!("{}: {line}", candidate.change),
        None => candidate.change.clone(),
    }
}

fn or(change: &Option<String>) -> String {
    let change = change.as_ref();
    change.map_or(String::new(), |change| format!("; or {change}"))
}

/// The oldest ancestor without a gap that has huge pages switched off as well.
fn switched_off_by(root: &Root, reading: &Reading) -> Option<(u32, String)> {
    const DEEPEST: usize = 64;
    let mut found = None;
    let mut status = reading.status.clone()?;
    for _ in 0..DEEPEST {
        if status.thp_enabled != Some(false) || status.ppid == 0 {
            break;
        }
        let pid = status.ppid;
        status = proc::status(root, pid).ok()?;
        if status.thp_enabled == Some(false) {
            found = Some((pid, status.name.clone()));
        }
    }
    found
}
