// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the switches took.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use toll_linux::memory::Pages;
use toll_linux::remote::RemoteError;

/// Counts and times of all calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Costs {
    pub collapsed: u64,
    pub split: u64,
    /// Calls without effect that may succeed later.
    pub retried: u64,
    /// Regions that the kernel refuses.
    pub failed: u64,
    /// The first refusal.
    pub failure: Option<String>,
    /// Time in calls, their CPU time in this process, and the longest call.
    pub spent: Duration,
    pub cpu: Duration,
    pub longest: Duration,
    /// The same with the pauses between calls.
    pub elapsed: Duration,
}

impl Costs {
    pub(super) fn count(&mut self, size: Pages) {
        match size {
            Pages::Huge => self.collapsed += 1,
            Pages::Small => self.split += 1,
        }
    }

    pub(super) fn fail(&mut self, error: &RemoteError) {
        self.failed += 1;
        self.failure.get_or_insert_with(|| error.to_string());
    }
}

/// A call in progress.
pub(super) struct Call {
    begun: Instant,
    cpu: Duration,
}

impl Call {
    pub(super) fn begin() -> Call {
        Call {
            cpu: own_cpu(),
            begun: Instant::now(),
        }
    }

    /// Adds the call; returns its time.
    pub(super) fn end(self, costs: &mut Costs) -> Duration {
        let spent = self.begun.elapsed();
        costs.spent += spent;
        costs.longest = costs.longest.max(spent);
        costs.cpu += own_cpu().saturating_sub(self.cpu);
        spent
    }
}

/// CPU time of this thread.
fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
