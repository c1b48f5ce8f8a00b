// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a scenario's runs, with everything needed to repeat them.

mod fail_if;
mod plot;
mod provenance;
mod sizes;
mod table;
mod tail;
mod workloads;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toll_model::plan::Estimate;
use toll_model::stats::{self, Interval};

use crate::counters::Counters;
use crate::guest::{Counts, Latency, Machine, Section};
use crate::scenario::Size;

pub use fail_if::{broken, holds};
pub use plot::{bars, shares, tails};
pub use provenance::{provenance, resolution};
pub use sizes::{SizeCost, sizes, sizes_table};
pub use table::{compared, is_shown, markdown, number, table};
pub use tail::add_tails;
pub use workloads::{Workload, workloads, workloads_table};

pub const FORMAT: &str = "tollfree-lab-results";
pub const VERSION: u32 = 1;
/// Main section of a scenario with several sections.
pub const MAIN: &str = "main";

/// All runs of one scenario in one form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    pub format: String,
    pub version: u32,
    pub scenario: String,
    pub form: Size,
    /// CPU preset of the TLB model.
    pub preset: String,
    pub environment: Environment,
    /// Counters that changes are judged by.
    pub judged_by: Vec<String>,
    pub results: Vec<Entry>,
    /// Cost by size, if the scenario names sections for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeCost>,
    /// Cost of each workload relative to the best stock policy, if the scenario compares them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Workload>,
}

/// Environment of the runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Environment {
    /// Day of the run, UTC, YYYY-MM-DD.
    pub date: String,
    pub host: Host,
    pub qemu: String,
    pub machine: Machine,
    /// How the scenario first touches memory.
    pub first_touch: String,
    /// Digest of the scenario's file, the guest's programs and the plugin.
    pub fingerprint: String,
    pub kernels: Vec<Kernel>,
}

/// Host machine of the emulation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Host {
    pub cpu: String,
    pub cpus: usize,
    pub memory_mib: u64,
    pub kernel: String,
}

/// A kernel under test.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kernel {
    pub variant: String,
    pub release: String,
    /// Version of Debian's source package.
    pub source: String,
    /// Seams and foreign patches; the 9xx patches are lab-only.
    pub patches: Vec<String>,
}

/// Results of one variant under one policy in one section.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    pub variant: String,
    pub policy: String,
    pub section: String,
    /// Number of runs.
    pub samples: usize,
    /// True if all runs came from earlier calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Median, minimum and maximum over the runs.
    pub counters: BTreeMap<String, Estimate>,
    /// Counters of each run, in the order of the runs.
    pub runs: Vec<Counters>,
    #[serde(flatten)]
    pub last: Detail,
    /// Page faults of each run.
    #[serde(skip)]
    pub faults: Vec<Latency>,
}

/// Data of the last run only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Detail {
    /// Instructions of a page fault, and the share of faults that need more.
    pub fault_tail: Vec<(u64, f64)>,
    /// The virtual PMU's own counters, by process name.
    pub processes: BTreeMap<String, Counts>,
    /// The virtual PMU's own counters of each CPU.
    pub cpus: Vec<Counts>,
}

impl Detail {
    pub fn of_section(section: &Section) -> Detail {
        Detail {
            fault_tail: section.faults.tail(),
            processes: section.by_process(),
            cpus: section.cpus.clone(),
        }
    }
}

impl Entry {
    pub fn new(variant: &str, policy: &str, section: &str) -> Entry {
        Entry {
            variant: variant.to_owned(),
            policy: policy.to_owned(),
            section: section.to_owned(),
            samples: 0,
            cached: true,
            counters: BTreeMap::new(),
            runs: Vec::new(),
            last: Detail::default(),
            faults: Vec::new(),
        }
    }

    /// Adds a run.
    pub fn add(&mut self, run: Counters, last: Detail, is_cached: bool) {
        self.runs.push(run);
        self.samples = self.runs.len();
        self.cached &= is_cached;
        self.last = last;
        self.summarize();
    }

    /// Computes the counters from the runs.
    pub fn summarize(&mut self) {
        let names: Vec<String> = self
            .runs
            .iter()
            .flat_map(|run| run.keys().cloned())
            .collect();
        for name in names {
            let values: Vec<f64> = self.values(&name);
            self.counters.insert(name, estimate(&values));
        }
    }

    /// Returns a counter of each run; 0 if a run does not have it.
    pub fn values(&self, counter: &str) -> Vec<f64> {
        let value = |run: &Counters| run.get(counter).copied().unwrap_or(0.0);
        self.runs.iter().map(value).collect()
    }

    /// Returns the rounds of two variants that make a change of a counter by this share significant
    /// against the spread of these runs (95 %, normal approximation); at least 6, the minimum for
    /// an interval. `None` with fewer than 3 runs, or if the counter is 0.
    pub fn rounds_for(&self, counter: &str, change: f64) -> Option<u32> {
        let values = self.values(counter);
        let runs = values.len() as f64;
        let mean = values.iter().sum::<f64>() / runs;
        if runs < 3.0 || mean <= 0.0 {
            return None;
        }
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let spread = (squares / (runs - 1.0)).sqrt() / mean;
        // The ratio of a round has the spread of both runs.
        let rounds = 2.0 * (1.96 * spread / change).powi(2);
        Some((rounds.ceil() as u32).max(6))
    }

    /// Returns the ratio to `base` in a counter (ours / base) with its 95 % interval over
    /// interleaved runs. `None` if either is 0 in some run.
    pub fn relative_to(&self, base: &Entry, counter: &str) -> Option<Interval> {
        stats::ratio_of_rounds(&self.values(counter), &base.values(counter), 0.95)
    }
}

impl Results {
    /// Returns the rounds that make a change by this share significant in every judged counter,
    /// from the runs of the first variant, and the counter that needs the most. `None` with too few
    /// runs.
    pub fn rounds_for(&self, change: f64) -> Option<(u32, &str)> {
        let variant = *self.variants().first()?;
        let of_entry = |entry: &Entry| {
            let needed = |name: &String| entry.rounds_for(name, change);
            let each = self.judged_by.iter();
            each.filter_map(|name| Some((needed(name)?, name.as_str())))
                .max()
        };
        let entries = self.results.iter();
        entries
            .filter(|entry| entry.variant == variant)
            .filter_map(of_entry)
            .max()
    }

    /// Returns the entry of a variant that corresponds to `other` of another variant.
    pub fn counterpart(&self, other: &Entry, variant: &str) -> Option<&Entry> {
        self.results.iter().find(|entry| {
            entry.variant == variant
                && entry.policy == other.policy
                && entry.section == other.section
        })
    }

    /// Returns the variants in the requested order.
    pub fn variants(&self) -> Vec<&str> {
        self.environment
            .kernels
            .iter()
            .map(|kernel| kernel.variant.as_str())
            .collect()
    }
}

fn estimate(values: &[f64]) -> Estimate {
    Estimate {
        median: stats::median(values).unwrap_or(0.0),
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

#[cfg(test)]
pub(crate) mod tests;
