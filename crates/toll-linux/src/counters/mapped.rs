// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of a process in huge pages, of `/proc/PID/smaps_rollup`. The kernel walks all page tables
//! of the process to answer, so its readers have a budget.

use std::io::ErrorKind;

use toll_model::losses::Missing;

use crate::{Root, proc};

/// Share of a CPU for reading it.
pub(super) const SHARE: f64 = 0.005;
/// Expected cost in seconds per resident byte, before it is known: 25 ms per GiB in 4 KiB pages.
pub(super) const EXPECTED: f64 = 0.025 / (1u64 << 30) as f64;

/// Memory in huge pages and page tables, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    pub anon: u64,
    pub shmem: u64,
    pub file: u64,
    pub hugetlb: u64,
    pub page_tables: u64,
}

/// Why the memory of a process is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The budget has not allowed it.
    NotYet,
    NotPermitted,
    NoFile,
}

impl Unread {
    /// The reason and the fix.
    pub fn missing(self) -> Missing {
        let (reason, fix) = match self {
            Unread::NotYet => (
                "the memory was not read: that may take 0.5 % of the time, and there was too little",
                "a longer run or interval",
            ),
            Unread::NotPermitted => (
                "/proc/PID/smaps_rollup of another user's process: not permitted",
                "run it as that process's user, or as root",
            ),
            Unread::NoFile => (
                "the kernel has no smaps_rollup",
                "a kernel built with CONFIG_PROC_PAGE_MONITOR",
            ),
        };
        Missing::new(reason, fix)
    }
}

impl Mapped {
    /// Memory in huge pages of any kind.
    pub(super) fn huge(&self) -> u64 {
        self.anon + self.shmem + self.file + self.hugetlb
    }

    pub(super) fn add(&mut self, one: &Mapped) {
        self.combine(one, u64::saturating_add);
    }

    pub(super) fn raise(&mut self, one: &Mapped) {
        self.combine(one, u64::max);
    }

    fn combine(&mut self, one: &Mapped, combine: impl Fn(u64, u64) -> u64) {
        self.anon = combine(self.anon, one.anon);
        self.shmem = combine(self.shmem, one.shmem);
        self.file = combine(self.file, one.file);
        self.hugetlb = combine(self.hugetlb, one.hugetlb);
        self.page_tables = combine(self.page_tables, one.page_tables);
    }
}

/// The memory of one process with its page tables. One that has ended meanwhile has none.
pub(super) fn mapped(root: &Root, pid: u32) -> Result<Mapped, Unread> {
    let mut sum = rollup(root, pid)?;
    let status = proc::status(root, pid).unwrap_or_default();
    sum.page_tables = status.page_tables.unwrap_or(0);
    Ok(sum)
}

/// The memory of one process without its page tables.
pub(super) fn rollup(root: &Root, pid: u32) -> Result<Mapped, Unread> {
    let has_memory = || proc::status(root, pid).is_ok_and(|status| status.rss.is_some());
    match root.read(format!("/proc/{pid}/smaps_rollup")) {
        Ok(text) => Ok(parse(&text)),
        Err(error) => match error.kind() {
            ErrorKind::PermissionDenied => Err(Unread::NotPermitted),
            ErrorKind::NotFound if has_memory() => Err(Unread::NoFile),
            _ => Ok(Mapped::default()),
        },
    }
}

fn parse(text: &str) -> Mapped {
    let mut sum = Mapped::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let place = match key {
            "AnonHugePages" => &mut sum.anon,
            "ShmemPmdMapped" => &mut sum.shmem,
            "FilePmdMapped" => &mut sum.file,
            "Shared_Hugetlb" | "Private_Hugetlb" => &mut sum.hugetlb,
            _ => continue,
        };
        *place += value.trim().trim_end_matches(" kB").parse().unwrap_or(0) << 10;
    }
    sum
}
