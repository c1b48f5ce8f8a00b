// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches a growing process and collapses the regions that a plan selects.
//!
//! Advice given to a heap is lost as brk extends it, and glibc's arenas become accessible in small
//! steps, so neither can be advised in advance: the parent polls the mappings and collapses
//! complete regions.
//!
//! Only regions with 4 KiB pages are collapsed. A region without pages may become huge at its first
//! touch, and a huge one needs nothing: on Linux 6.7 and later both are recognized from the page
//! tables (see [`Backing`]) without disturbing the process; on earlier kernels the collapse is
//! requested and has no effect.

mod backing;
mod budget;
mod forks;
mod plan;
mod regions;
mod shared;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use toll_model::REGION;

pub use backing::Backing;
pub use budget::map_budget;
use forks::of_forks;
pub use plan::WatchPlan;
pub use regions::{ENOUGH, Ranges, grown, heap_start, planned};
pub use shared::Restore;

use crate::Root;
use crate::proc::{InMemory, Mapping, maps};
use crate::remote::{Advice, Reach, RemoteError, RemoteProcess};

/// Shortest and longest interval between two polls.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(200);
/// Maximum share of one CPU for collapsing. A collapse holds the target's mmap lock, which blocks
/// its page faults: for at least half of the time they are never blocked.
const COLLAPSE_SHARE: f64 = 0.5;
/// Maximum share of one CPU for reading the mappings (60,000 of them take 30 ms).
const READ_SHARE: f64 = 0.05;
/// Maximum duration of a burst of collapses before a pause.
const BURST: Duration = Duration::from_millis(20);
/// Initial delay before a failed collapse is retried; it grows with each failure.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// Statistics of a watcher.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Regions that this watcher made huge (before Linux 6.7: including those that were huge
    /// already).
    pub collapsed: u64,
    /// Regions given up.
    pub failed: u64,
    /// Attempts that found nothing to collapse yet.
    pub retried: u64,
    /// Ranges that were advised before their first touch.
    pub advised: u64,
    /// Time spent reading, advising and collapsing, ns.
    pub spent_ns: u64,
    /// Description of the first permanent failure.
    pub failure: Option<String>,
}

/// State of a region.
#[derive(Debug, Clone, Copy)]
enum State {
    Done,
    Failed,
    Waiting { next: Instant, tries: u32 },
}

/// Watches one process. After the process has ended, [`Watcher::tick`] does nothing.
#[derive(Debug)]
pub struct Watcher {
    pid: u32,
    remote: RemoteProcess,
    plan: WatchPlan,
    regions: HashMap<u64, State>,
    /// If the plan concerns shared memory.
    in_memory: Option<InMemory>,
    /// Regions of files that may outlive the process.
    files: Restore,
    /// Address ranges with MADV_HUGEPAGE applied.
    advised: Vec<(u64, u64)>,
    pause: Duration,
    counters: Counters,
    ended: bool,
}

impl Watcher {
    pub fn new(pid: u32, remote: RemoteProcess, plan: WatchPlan) -> Watcher {
        Watcher {
            pid,
            remote,
            in_memory: (plan.all || !plan.files.is_empty())
                .then(|| InMemory::read(&Root::system(), pid)),
            plan,
            regions: HashMap::new(),
            files: Restore::default(),
            advised: Vec::new(),
            pause: SHORTEST,
            counters: Counters::default(),
            ended: false,
        }
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Polls the process once and does the due work. Returns the time until the next call.
    pub fn tick(&mut self) -> Duration {
        if self.ended || self.plan.is_empty() {
            return LONGEST;
        }
        let began = Instant::now();
        let Ok(maps) = maps(&Root::system(), self.pid) else {
            self.ended = true;
            return LONGEST;
        };
        self.advise_addresses(&maps);
        let due = self.due(&maps, began);
        let reading = began.elapsed();
        let progress = self.collapse_due(&due, &maps);
        let spent = began.elapsed();
        self.counters.spent_ns += spent.as_nanos() as u64;
        self.pause = if progress {
            SHORTEST
        } else {
            (self.pause * 2).min(LONGEST)
        };
        let rest = rest(reading, READ_SHARE).max(rest(spent - reading, COLLAPSE_SHARE));
        self.pause.max(rest)
    }

    /// Advises fixed addresses as soon as they are mapped, so that their first touch is huge. Costs
    /// splits, so only within the map budget.
    fn advise_addresses(&mut self, maps: &[Mapping]) {
        if self.remote.collapse_only().is_some() {
            return;
        }
        let mut budget = map_budget(&Root::system(), maps.len());
        for range in self.new_address_ranges(maps) {
            if budget < 2 {
                return;
            }
            budget -= 2;
            self.advised.push(range);
            match self.remote.advise(range.0, range.1 - range.0, Advice::Huge) {
                Ok(()) => self.counters.advised += 1,
                Err(error) => self.note(&error),
            }
        }
    }

    /// Returns runs of wanted regions at fixed addresses that were not advised yet.
    fn new_address_ranges(&self, maps: &[Mapping]) -> Vec<(u64, u64)> {
        if self.plan.addresses.is_empty() {
            return Vec::new();
        }
        let fixed = WatchPlan {
            addresses: self.plan.addresses.clone(),
            ..WatchPlan::default()
        };
        let wanted = grown(maps, &fixed, self.in_memory.as_ref())
            .into_iter()
            .map(|region| (region, region + REGION));
        let known = Ranges::new(self.advised.iter().copied());
        Ranges::new(wanted)
            .iter()
            .filter(|(start, end)| known.covered(*start, *end) == 0)
            .collect()
    }

    /// Returns the regions to try now. Drops regions that are no longer mapped.
    fn due(&mut self, maps: &[Mapping], now: Instant) -> Vec<u64> {
        let grown = grown(maps, &self.plan, self.in_memory.as_ref());
        let known = Ranges::new(grown.iter().map(|region| (*region, region + REGION)));
        self.regions
            .retain(|region, _| known.covered(*region, region + REGION) != 0);
        let is_due = |region: &u64| match self.regions.get(region) {
            None => true,
            Some(State::Waiting { next, .. }) => *next <= now,
            Some(_) => false,
        };
        let due = grown.into_iter().filter(is_due).collect();
        self.with_small_pages(due, maps)
    }

    /// Filters `due` to regions with something to collapse. Marks huge ones as done.
    fn with_small_pages(&mut self, mut due: Vec<u64>, maps: &[Mapping]) -> Vec<u64> {
        let ranges = Ranges::new(due.iter().map(|region| (*region, region + REGION)));
        let ranges: Vec<(u64, u64)> = ranges.iter().collect();
        let Ok(own) = Backing::of(&Root::system(), self.pid, &ranges) else {
            return due;
        };
        due.retain(|region| !own.has(*region));
        let forks = of_forks(&Root::system(), self.pid, maps, &due);
        let huge = own.huge.iter().chain(&forks.huge);
        self.regions
            .extend(huge.map(|region| (*region, State::Done)));
        [own.small, forks.small].concat()
    }

    /// Collapses for at most one burst; returns whether it had an effect or work remains.
    fn collapse_due(&mut self, due: &[u64], maps: &[Mapping]) -> bool {
        let began = Instant::now();
        let mut progress = false;
        for region in due {
            if self.ended {
                return false;
            }
            if began.elapsed() >= BURST {
                return true;
            }
            if self.collapse(*region) {
                self.files.note(*region, maps);
                progress = true;
            }
        }
        progress
    }

    fn collapse(&mut self, region: u64) -> bool {
        let tries = match self.regions.get(&region) {
            Some(State::Waiting { tries, .. }) => *tries,
            _ => 0,
        };
        let (state, done) = match self.remote.collapse(region, REGION) {
            Ok(()) => {
                self.counters.collapsed += 1;
                (State::Done, true)
            }
            Err(error) if error.try_again() => {
                self.counters.retried += 1;
                let wait = (FIRST_RETRY * (1 << tries.min(10))).min(LAST_RETRY);
                let next = Instant::now() + wait;
                (
                    State::Waiting {
                        next,
                        tries: tries + 1,
                    },
                    false,
                )
            }
            Err(error) => {
                self.note(&error);
                self.counters.failed += u64::from(!self.ended);
                (State::Failed, false)
            }
        };
        self.regions.insert(region, state);
        done
    }

    /// Records the first permanent failure for the summary.
    fn note(&mut self, error: &RemoteError) {
        self.ended |= matches!(error, RemoteError::Gone);
        if !error.try_again() && !self.ended && self.counters.failure.is_none() {
            self.counters.failure = Some(error.to_string());
        }
    }

    /// Returns what this watcher made huge in files that may outlive the process.
    pub fn restore(&self) -> &Restore {
        &self.files
    }

    /// Returns the mechanism that the watcher uses.
    pub fn reach(&self) -> Reach {
        self.remote.reach()
    }
}

/// Returns the pause after `spent` that limits the time share to `share`.
fn rest(spent: Duration, share: f64) -> Duration {
    spent.mul_f64(1.0 / share - 1.0)
}
