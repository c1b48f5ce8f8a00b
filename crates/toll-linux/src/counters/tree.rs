// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a process and its descendants, of `/proc/PID`.
//!
//! The kernel adds the counters of a child that ended to those of the parent that waited for it. So
//! the sum over the tree, with waited-for children, only grows, as long as each child is waited
//! for. Where one is not (the parent ignores SIGCHLD, or has ended itself), its last values are
//! kept.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use toll_model::losses::{Reading, Scope, Snapshot};

use super::delays::{Delays, NAMES as DELAYS};
use super::mapped::{EXPECTED, Mapped, SHARE, Unread, mapped};
use super::used::Used;
use crate::proc::Stat;
use crate::{Root, proc, sys};

/// Minimum time between two reads of the memory in huge pages.
const SHORTEST: Duration = Duration::from_millis(20);

/// A process at its last look.
#[derive(Debug, Clone, Copy)]
struct Seen {
    started: u64,
    own: Used,
    children: Used,
}

impl Seen {
    fn new(stat: &Stat) -> Seen {
        Seen {
            started: stat.start_ticks,
            own: Used::own(stat),
            children: Used::by_children(stat),
        }
    }

    fn total(&self) -> Used {
        self.own.plus(self.children)
    }
}

/// A process tree that is watched.
#[derive(Debug)]
pub(super) struct Tree {
    pub pid: u32,
    /// Start time of the process: another one may reuse its id. `None` before it is started.
    started: Option<u64>,
    seen: BTreeMap<u32, Seen>,
    /// Counters of processes that ended and were not waited for.
    unaccounted: Used,
    /// What the kernel reported at the end.
    final_use: Option<Used>,
    /// The largest memory since the last snapshot, or why it could not be read.
    mapped: Result<Mapped, Unread>,
    /// The memory at the last look.
    last: Mapped,
    begun: Instant,
    spent: Duration,
    last_mapped: Option<Instant>,
    delays: Delays,
}

impl Tree {
    pub(super) fn new(pid: u32, started: Option<u64>) -> Tree {
        Tree {
            pid,
            started,
            seen: BTreeMap::new(),
            unaccounted: Used::default(),
            final_use: None,
            mapped: Err(Unread::NotYet),
            last: Mapped::default(),
            begun: Instant::now(),
            spent: Duration::ZERO,
            last_mapped: None,
            delays: Delays::default(),
        }
    }

    /// Whether the process has ended; a zombie has.
    pub(super) fn is_over(&self, root: &Root) -> bool {
        match proc::stat(root, self.pid) {
            Ok(stat) => Some(stat.start_ticks) != self.started || stat.state == 'Z',
            Err(_) => true,
        }
    }

    /// Sets the totals that the kernel reported when the process had ended.
    pub(super) fn end(&mut self, used: Used) {
        self.final_use = Some(used);
    }

    /// Ids of the processes that were alive at the last look.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.seen.keys().copied().collect()
    }

    /// Looks at every process of the tree. Between two snapshots this keeps what an ended process
    /// had used.
    pub(super) fn look(&mut self, root: &Root) {
        let mut now = BTreeMap::new();
        let started = self.started;
        let is_other = |pid: u32, stat: &Stat, seen: &BTreeMap<u32, Seen>| {
            let known = seen.get(&pid).map(|seen| seen.started);
            let known = known.or(if pid == self.pid { started } else { None });
            known.is_some_and(|known| known != stat.start_ticks)
        };
        let orphans: Vec<u32> = self.seen.keys().copied().collect();
        let descendants = match self.started {
            Some(_) => proc::tree(root, self.pid),
            None => Vec::new(),
        };
        for pid in descendants.into_iter().chain(orphans) {
            if now.contains_key(&pid) {
                continue;
            }
            match proc::stat(root, pid) {
                Ok(stat) if !is_other(pid, &stat, &self.seen) => {
                    now.insert(pid, Seen::new(&stat));
                }
                _ => {}
            }
        }
        self.keep_unaccounted(&now);
        self.seen = now;
        let pids = self.pids();
        self.delays.look(root, &pids);
        self.look_at_memory(root, &pids);
    }

    /// Adds what ended processes had used and no parent took over.
    fn keep_unaccounted(&mut self, now: &BTreeMap<u32, Seen>) {
        let mut ended = Used::default();
        let mut taken_over = Used::default();
        for (pid, seen) in &self.seen {
            match now.get(pid) {
                Some(still) => {
                    taken_over = taken_over.plus(still.children.minus(seen.children));
                }
                None => ended = ended.plus(seen.total()),
            }
        }
        self.unaccounted = self.unaccounted.plus(ended.minus(taken_over));
    }

    /// Reads the memory of all processes if that does not cost too much now.
    fn look_at_memory(&mut self, root: &Root, pids: &[u32]) {
        let resident = |pid: &u32| proc::status(root, *pid).ok()?.rss;
        let resident: u64 = pids.iter().filter_map(resident).sum();
        // Tables of huge pages are walked in no time.
        let huge = sys::meminfo(root).map_or(0, |info| info.anon_huge);
        if !self.may_read(resident.saturating_sub(huge)) {
            return;
        }
        let begun = Instant::now();
        let mut sum = Mapped::default();
        let mut failure = None;
        for pid in pids {
            match mapped(root, *pid) {
                Ok(one) => sum.add(&one),
                Err(unread) => failure = Some(unread),
            }
        }
        self.spent += begun.elapsed();
        self.last_mapped = Some(Instant::now());
        if pids.is_empty() {
            return;
        }
        self.last = sum;
        match (failure, &mut self.mapped) {
            (Some(unread), _) => self.mapped = Err(unread),
            (None, Ok(largest)) => largest.raise(&sum),
            (None, mapped) => *mapped = Ok(sum),
        }
    }

    /// Whether the page tables of so much memory in 4 KiB pages may be walked now.
    fn may_read(&self, resident: u64) -> bool {
        let is_early = |last: Instant| last.elapsed() < SHORTEST;
        if self.last_mapped.is_some_and(is_early) {
            return false;
        }
        let expected = resident as f64 * EXPECTED;
        let allowed = self.begun.elapsed().as_secs_f64() * SHARE;
        // What is read in less than 1 ms costs nothing.
        expected < 0.001 || self.spent.as_secs_f64() + expected <= allowed
    }

    /// Returns the counters. The memory is the largest since the last snapshot.
    pub(super) fn read(&mut self, root: &Root) -> Snapshot {
        self.look(root);
        let mut snapshot = Snapshot::default();
        let seen = self.seen.values();
        let mut used = seen.fold(self.unaccounted, |sum, seen| sum.plus(seen.total()));
        if let Some(last) = self.final_use {
            used = used.with(last, u64::max);
        }
        let mut set = |name, value| snapshot.set(Scope::Tree, name, Ok(value));
        set("page_faults", used.minor.saturating_add(used.major));
        set("page_faults_minor", used.minor);
        set("page_faults_major", used.major);
        set("cpu_user", used.user);
        set("cpu_system", used.system);
        self.set_mapped(&mut snapshot);
        for (name, value) in DELAYS.iter().zip(self.delays.totals(root)) {
            let reading = Reading {
                source: Some("taskstats"),
                ..Reading::new(value)
            };
            snapshot.set_reading(Scope::Tree, *name, reading);
        }
        snapshot
    }

    fn set_mapped(&mut self, snapshot: &mut Snapshot) {
        let mapped = self.mapped;
        let get = |of: fn(Mapped) -> u64| mapped.map(of).map_err(Unread::missing);
        snapshot.set(Scope::Tree, "mapped_huge_anon", get(|it| it.anon));
        snapshot.set(Scope::Tree, "mapped_huge_shmem", get(|it| it.shmem));
        snapshot.set(Scope::Tree, "mapped_huge_file", get(|it| it.file));
        snapshot.set(Scope::Tree, "mapped_hugetlb", get(|it| it.hugetlb));
        snapshot.set(Scope::Tree, "page_tables", get(|it| it.page_tables));
    }

    /// Starts a new interval for the largest memory.
    pub(super) fn forget_largest(&mut self) {
        if let Ok(largest) = &mut self.mapped {
            *largest = self.last;
        }
    }
}
