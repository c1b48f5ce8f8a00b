// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the memory of the processes in huge pages, as far as a budget allows.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use toll_model::REGION;

use super::process::Process;
use crate::Root;
use crate::counters::mapped::{EXPECTED, Mapped, SHARE, rollup};

/// CPU time in s that the first looks may take at once.
const CREDIT: f64 = 0.1;
/// Expected cost of a process without its page tables, s.
const EACH: f64 = 50e-6;
/// Time until the memory of a process is read again.
const AGAIN: Duration = Duration::from_secs(60);

/// The machine's memory in huge pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Huge {
    pub anon: u64,
    /// Whether there are hugetlb pages, which are not in the resident memory of a process.
    pub has_hugetlb: bool,
}

/// The budget.
#[derive(Debug)]
pub(super) struct Rollups {
    begun: Instant,
    spent: Duration,
}

impl Rollups {
    pub(super) fn new() -> Rollups {
        Rollups {
            begun: Instant::now(),
            spent: Duration::ZERO,
        }
    }

    /// Reads those that were never read, the largest first, then those that were read long ago.
    pub(super) fn look(&mut self, root: &Root, processes: &mut BTreeMap<u32, Process>, huge: Huge) {
        if !huge.has_hugetlb {
            processes.values_mut().for_each(set_small);
        }
        let mut due: Vec<&mut Process> = processes
            .values_mut()
            .filter(|it| is_due(it, huge))
            .collect();
        due.sort_by_key(|it| (it.mapped_at, Reverse(it.resident)));
        // For one that is too large now, time has to be saved.
        let mut is_saving = false;
        for process in due {
            if is_saving && process.mapped_at.is_some() {
                break;
            }
            match self.affords(process.resident.saturating_sub(huge.anon)) {
                true => self.read(root, process),
                false => is_saving = true,
            }
        }
    }

    fn read(&mut self, root: &Root, process: &mut Process) {
        let begun = cpu_time();
        process.mapped = rollup(root, process.pid);
        process.mapped_at = Some(Instant::now());
        self.spent += cpu_time().saturating_sub(begun);
    }

    /// Whether the page tables of this number of bytes in 4 KiB pages may be walked now.
    fn affords(&self, resident: u64) -> bool {
        let expected = EACH + resident as f64 * EXPECTED;
        let allowed = CREDIT + self.begun.elapsed().as_secs_f64() * SHARE;
        self.spent.as_secs_f64() + expected <= allowed
    }
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// No huge page is in less memory than its own: that need not be read.
fn set_small(process: &mut Process) {
    if !process.is_kernel_thread && process.resident < REGION {
        process.mapped = Ok(Mapped::default());
    }
}

fn is_due(process: &Process, huge: Huge) -> bool {
    let least = if huge.has_hugetlb { 1 } else { REGION };
    let is_early = process.mapped_at.is_some_and(|at| at.elapsed() < AGAIN);
    !process.is_kernel_thread && process.resident >= least && !is_early
}
