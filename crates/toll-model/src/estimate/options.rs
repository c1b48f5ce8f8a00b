// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of an estimation.

use crate::plan::Estimate;

/// Options of the user, and facts about the machine and the run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// CPU time of one run without a plan, ns.
    pub baseline_ns: Option<f64>,
    /// Choose this many regions, those with the most misses, regardless of cost.
    pub top: Option<u64>,
    /// Use at most this many bytes.
    pub budget: Option<u64>,
    /// 2 MiB regions that are free without compaction.
    pub free_regions: Option<u64>,
    /// THP is `always`: everything is huge without a plan.
    pub thp_always: bool,
    /// `shmem_enabled` is `deny`: no huge pages in shared memory, not even by a collapse.
    pub shared_forbidden: bool,
    /// The blocks for huge pages were recently used, as in a comparison that warms memory up before
    /// each run: the host's cost of providing them is not included.
    pub warm: bool,
    /// Measured speed-up of everything huge (time before / after). If it is known, it is combined
    /// with the model for the total benefit; the model alone distributes it over regions.
    pub upper_bound: Option<Estimate>,
    /// Repeatability of the comparison that will check the prediction: half of its 80 % interval,
    /// on a logarithmic scale.
    pub repeats: Option<f64>,
    /// A comparison will check the plan before it is used: a set with a positive median gain is
    /// then worth its runs, even if the gain is not yet significant.
    pub is_proved_next: bool,
}

impl Options {
    /// Whether to choose the fewest regions with enough gain, rather than a given number.
    pub(super) fn chooses(&self) -> bool {
        self.top.is_none() && self.budget.is_none() && !self.thp_always
    }
}
