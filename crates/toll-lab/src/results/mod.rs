// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a scenario's runs, with everything needed to repeat them.

mod counters;
mod fail_if;
mod plot;
mod sizes;
mod table;
mod tail;
mod workloads;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toll_model::plan::Estimate;
use toll_model::stats::{self, Interval};

use crate::guest::{Counts, Latency, Machine, Section};
use crate::scenario::Size;

pub use counters::{Counters, of_section};
pub use fail_if::Condition;
pub use plot::{bars, shares, tails};
pub use sizes::{SizeCost, sizes, sizes_table};
pub use table::{compared, table};
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
    fn summarize(&mut self) {
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
pub(crate) mod tests {
    use super::*;

    /// Results of two variants with one run per value.
    pub(crate) fn example(vanilla: &[f64], tollfree: &[f64]) -> Results {
        let entry = |variant: &str, values: &[f64]| {
            let mut entry = Entry::new(variant, "default", MAIN);
            for value in values {
                let counters = [
                    ("shootdown_irqs".to_owned(), *value),
                    ("walks".to_owned(), 7.0),
                ];
                let last = Detail {
                    fault_tail: vec![(100, 0.1), (2000, 0.0)],
                    ..Detail::default()
                };
                entry.add(counters.into(), last, false);
            }
            entry
        };
        let kernel = |variant: &str| Kernel {
            variant: variant.to_owned(),
            release: format!("6.12.117-{variant}"),
            source: "6.12.117-1".to_owned(),
            patches: vec!["900-lab-x.patch".to_owned()],
        };
        Results {
            format: FORMAT.to_owned(),
            version: VERSION,
            scenario: "example".to_owned(),
            form: Size::Short,
            preset: "skylake".to_owned(),
            environment: Environment {
                date: "2026-11-21".to_owned(),
                host: Host {
                    cpu: "a CPU".to_owned(),
                    cpus: 2,
                    memory_mib: 4096,
                    kernel: "6.18".to_owned(),
                },
                qemu: "10.0.2".to_owned(),
                machine: Machine::plain(2, 512),
                first_touch: "writes".to_owned(),
                fingerprint: "0".to_owned(),
                kernels: vec![kernel("vanilla"), kernel("tollfree")],
            },
            judged_by: vec!["shootdown_irqs".to_owned(), "walks".to_owned()],
            results: vec![entry("vanilla", vanilla), entry("tollfree", tollfree)],
            sizes: Vec::new(),
            workloads: Vec::new(),
        }
    }

    #[test]
    fn a_counter_is_the_median_of_its_runs_with_their_range() {
        let results = example(&[3.0, 1.0, 2.0], &[1.0]);
        let irqs = results.results[0].counters["shootdown_irqs"];
        assert_eq!((irqs.median, irqs.low, irqs.high), (2.0, 1.0, 3.0));
        assert_eq!(results.results[0].samples, 3);
    }

    #[test]
    fn a_relation_is_ours_by_the_base() {
        let results = example(&[100.0; 6], &[50.0; 6]);
        let [base, ours] = &results.results[..] else {
            panic!("two entries");
        };
        assert_eq!(
            results.counterpart(ours, "vanilla").unwrap().variant,
            "vanilla"
        );
        let ratio = ours.relative_to(base, "shootdown_irqs").unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (0.5, 0.5, 0.5));
        assert!(ours.relative_to(base, "no such counter").is_none());
    }

    #[test]
    fn rounds_grow_with_the_spread() {
        let results = example(&[100.0, 101.0, 99.0], &[100.0, 110.0, 90.0]);
        let [steady, spread] = &results.results[..] else {
            panic!("two entries");
        };
        assert_eq!(steady.rounds_for("shootdown_irqs", 0.03), Some(6));
        // 2 * (1.96 * 0.1 / 0.03)^2
        assert_eq!(spread.rounds_for("shootdown_irqs", 0.03), Some(86));
        assert_eq!(spread.rounds_for("nothing", 0.03), None);
        // Over all judged counters, in the first variant.
        assert_eq!(results.rounds_for(0.03).map(|it| it.0), Some(6));
        let other = example(&[100.0, 110.0, 90.0], &[100.0; 3]);
        assert_eq!(other.rounds_for(0.03), Some((86, "shootdown_irqs")));
        let one = example(&[1.0], &[1.0]);
        assert_eq!(one.rounds_for(0.03), None);
        assert_eq!(one.results[0].rounds_for("walks", 0.03), None);
    }

    #[test]
    fn results_survive_their_file() {
        let results = example(&[1.0], &[2.0]);
        let text = serde_json::to_string(&results).unwrap();
        let back: Results = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }
}
