// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches memory of a running process between huge and 4 KiB pages, and back to the page sizes
//! that it had before.
//!
//! A collapse (MADV_COLLAPSE) copies a region into a huge page. A split (MADV_COLD for one page of
//! it) cuts the huge page into 4 KiB pages at the same place; nothing is copied. Neither changes
//! what the memory holds, nor the flags of a mapping: MADV_HUGEPAGE and MADV_NOHUGEPAGE are never
//! given, because no advice takes them back.
//!
//! Each call acts on one region and delays the process only as long as it lasts. Between two calls
//! is a pause, so that the process is undisturbed for most of the time.
//!
//! | file | holds |
//! |---|---|
//! | `selection` | the memory that can be switched |
//! | `costs` | what the switches took |
//! | `errors` | why a process cannot be switched |

mod costs;
mod errors;
mod selection;

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use toll_linux::Root;
use toll_linux::memory::Pages;
use toll_linux::proc::{self, Pagemap};
use toll_linux::remote::{self, RemoteError, RemoteProcess};
use toll_linux::watch::{Backing, Ranges, WatchPlan, grown};
use toll_model::REGION;

pub use self::costs::Costs;
use self::errors::{gone, refused, unreadable};
pub use self::selection::{Selection, Shares};
use crate::error::UserError;

/// Passes over the regions of one switch. A page that another CPU handles is neither collapsed nor
/// split in this moment.
const PASSES: u32 = 5;
/// Time between two passes.
const RETRY: Duration = Duration::from_millis(10);
/// How long memory that resists is tried: a page that a child shares cannot be split.
const PATIENCE: Duration = Duration::from_secs(5);

/// Share of the time in calls, so that a request seldom meets one.
pub const GENTLE: f64 = 0.1;
/// The largest share: after Ctrl-C, and where a smaller one would take longer than the limit.
pub const HASTY: f64 = 0.5;

/// A region of the process.
#[derive(Debug, Clone, Copy)]
struct Part {
    region: u64,
    was_huge: bool,
    /// Whether it was switched at any time.
    touched: bool,
    /// Whether it is still switched.
    active: bool,
}

impl Part {
    fn before(&self) -> Pages {
        match self.was_huge {
            true => Pages::Huge,
            false => Pages::Small,
        }
    }
}

/// When a switch ends before it is complete.
pub struct Limits<'a> {
    /// Share of the time in calls, as far as the time suffices: [`GENTLE`] or [`HASTY`].
    pub share: f64,
    /// Regions that were never switched and are not reached by then are left out from now on.
    pub time: Duration,
    pub stop: &'a dyn Fn() -> bool,
}

/// The regions of one process that are switched. Dropping it restores them.
#[derive(Debug)]
pub struct Switch {
    remote: RemoteProcess,
    /// Refers to the address space in which the regions are.
    space: Pagemap,
    parts: Vec<Part>,
    costs: Costs,
    restored: bool,
}

/// What could not be restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unrestored {
    pub regions: u64,
    pub reason: Option<String>,
}

impl Switch {
    /// Switches nothing yet.
    ///
    /// # Errors
    /// [`UserError::Target`] if the process has ended, [`UserError::Missing`] if it may not be
    /// changed.
    pub fn new(pid: u32, selection: &Selection) -> Result<Switch, UserError> {
        let remote = RemoteProcess::for_pid(pid, false).map_err(|error| refused(pid, &error))?;
        let space = Pagemap::open(&Root::system(), pid)
            .map_err(|error| UserError::Missing(format!("process {pid}: pagemap: {error}")))?;
        let part = |(region, was_huge): &(u64, bool)| Part {
            region: *region,
            was_huge: *was_huge,
            touched: false,
            active: true,
        };
        Ok(Switch {
            remote,
            space,
            parts: selection.regions.iter().map(part).collect(),
            costs: Costs::default(),
            restored: false,
        })
    }

    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Whether the process is stopped for each call, because process_madvise is not available.
    pub fn stops(&self) -> bool {
        self.remote.reach() == remote::Reach::Ptrace
    }

    /// Number of the regions that are switched.
    pub fn active(&self) -> u64 {
        self.parts.iter().filter(|part| part.active).count() as u64
    }

    /// Gives all active regions this page size.
    ///
    /// # Errors
    /// [`UserError::Target`] if the address space is gone, [`UserError::Missing`] if the kernel
    /// refuses every region.
    pub fn to(&mut self, size: Pages, limits: &Limits) -> Result<(), UserError> {
        let begun = Instant::now();
        let result = self.passes(size, begun, limits);
        self.costs.elapsed += begun.elapsed();
        result
    }

    /// Passes over the regions until all have this page size, or some resist.
    fn passes(&mut self, size: Pages, begun: Instant, limits: &Limits) -> Result<(), UserError> {
        for pass in 1.. {
            let due = self.due(|part| part.active.then_some(size))?;
            let none_yet = due.len() as u64 >= self.active();
            let waits = none_yet && begun.elapsed() < PATIENCE;
            if due.is_empty() || (limits.stop)() {
                break;
            }
            if pass > PASSES && !waits {
                match none_yet {
                    true => return Err(self.nothing(size)),
                    false => break,
                }
            }
            self.pass(&due, begun, limits)?;
            thread::sleep(RETRY);
        }
        Ok(())
    }

    /// The error for a switch that changed no region.
    fn nothing(&self, size: Pages) -> UserError {
        let what = match size {
            Pages::Huge => "made huge",
            Pages::Small => "split",
        };
        let reason = match (&self.costs.failure, size) {
            (Some(failure), _) => failure,
            (None, Pages::Huge) => "the kernel refuses, or no huge page is free",
            (None, Pages::Small) => "another process shares its pages",
        };
        let pid = self.remote.pid();
        UserError::Missing(format!("--pid {pid}: nothing could be {what}: {reason}"))
    }

    /// Number of active regions that have another page size now.
    ///
    /// # Errors
    /// As [`Switch::to`].
    pub fn astray(&self, size: Pages) -> Result<u64, UserError> {
        let due = self.due(|part| part.active.then_some(size))?;
        Ok(due.len() as u64)
    }

    /// Gives all regions that were switched the page size that they had before.
    ///
    /// # Errors
    /// [`UserError::Target`] if the address space is gone: nothing is left to restore.
    pub fn restore(&mut self, share: f64) -> Result<Unrestored, UserError> {
        self.restored = true;
        let begun = Instant::now();
        let limits = Limits {
            share,
            time: Duration::MAX,
            stop: &|| false,
        };
        let (mut fewest, mut since) = (usize::MAX, begun);
        loop {
            // A call that splits nothing because a child shares the page is no error.
            let due = self.due(|part| part.touched.then(|| part.before()))?;
            if due.len() < fewest {
                (fewest, since) = (due.len(), Instant::now());
            }
            if due.is_empty() || since.elapsed() > PATIENCE {
                self.costs.elapsed += begun.elapsed();
                return Ok(self.unrestored(due.len() as u64));
            }
            self.pass(&due, begun, &limits)?;
            thread::sleep(RETRY);
        }
    }

    /// Leaves the regions as they are now.
    pub fn keep(&mut self) {
        self.restored = true;
    }

    fn unrestored(&self, regions: u64) -> Unrestored {
        let reason = (regions > 0).then(|| match &self.costs.failure {
            Some(failure) => failure.clone(),
            None => "another process shares these pages, or no huge page is free".to_owned(),
        });
        Unrestored { regions, reason }
    }

    /// Returns the parts that do not have the wanted page size, as indices with that size. Parts
    /// without pages, and those that can no longer be huge, are left alone.
    fn due(
        &self,
        wanted: impl Fn(&Part) -> Option<Pages>,
    ) -> Result<Vec<(usize, Pages)>, UserError> {
        let (root, pid) = (Root::system(), self.remote.pid());
        if self.space.is_gone() {
            return Err(gone(pid));
        }
        let everything = WatchPlan {
            all: true,
            ..WatchPlan::default()
        };
        let maps = proc::maps(&root, pid).map_err(|_| gone(pid))?;
        let eligible: HashSet<u64> = grown(&maps, &everything, None).into_iter().collect();
        let parts = self.parts.iter().map(|part| part.region);
        let ranges = parts.filter(|region| eligible.contains(region));
        let ranges = Ranges::new(ranges.map(|region| (region, region + REGION)));
        let ranges: Vec<(u64, u64)> = ranges.iter().collect();
        let backing = Backing::of(&root, pid, &ranges).map_err(|error| unreadable(pid, &error))?;
        let small: HashSet<u64> = backing.small.into_iter().collect();
        let huge: HashSet<u64> = backing.huge.into_iter().collect();
        let is_due = |(index, part): (usize, &Part)| {
            let size = wanted(part)?;
            let other = match size {
                Pages::Huge => &small,
                Pages::Small => &huge,
            };
            other.contains(&part.region).then_some((index, size))
        };
        Ok(self.parts.iter().enumerate().filter_map(is_due).collect())
    }

    fn pass(
        &mut self,
        due: &[(usize, Pages)],
        begun: Instant,
        limits: &Limits,
    ) -> Result<(), UserError> {
        remote::drain();
        for (done, (index, size)) in due.iter().enumerate() {
            if (limits.stop)() {
                return Ok(());
            }
            let part = self.parts[*index];
            if begun.elapsed() > limits.time && !part.touched {
                self.parts[*index].active = false;
                continue;
            }
            let spent = self.one(*index, *size)?;
            let left = limits.time.saturating_sub(begun.elapsed());
            let share = share(limits.share, spent * (due.len() - done) as u32, left);
            thread::sleep(spent.mul_f64(1.0 / share - 1.0));
        }
        Ok(())
    }

    /// Switches one region; returns the time of the call.
    fn one(&mut self, index: usize, size: Pages) -> Result<Duration, UserError> {
        let part = &mut self.parts[index];
        let meter = costs::Call::begin();
        let result = match size {
            Pages::Huge => self.remote.collapse(part.region, REGION),
            Pages::Small => self.remote.split(part.region),
        };
        let spent = meter.end(&mut self.costs);
        match result {
            Ok(()) => {
                part.touched = true;
                self.costs.count(size);
            }
            Err(RemoteError::Gone) => return Err(gone(self.remote.pid())),
            Err(error) if error.try_again() => self.costs.retried += 1,
            Err(error) => {
                part.active = false;
                self.costs.fail(&error);
            }
        }
        Ok(spent)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if !self.restored {
            // A failure was reported already: the one that ended this switch.
            let _ = self.restore(HASTY);
        }
    }
}

/// The share of the time in calls that is wanted, or what calls of so much time need to end in time.
fn share(wanted: f64, calls: Duration, left: Duration) -> f64 {
    let needed = calls.as_secs_f64() / left.as_secs_f64().max(1e-9);
    needed.clamp(wanted, HASTY)
}

#[cfg(test)]
mod tests;
