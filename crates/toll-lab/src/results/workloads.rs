// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workload costs under one policy, relative to the best of the others.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use toll_model::plan::Estimate;

use super::Entry;
use crate::scenario::Workloads;

/// State of unfragmented memory, in section names.
const WHOLE: &str = "whole";
/// Instructions and walks combined with the preset's weights.
const COST: &str = "modelled_ns";

/// One workload with memory in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub name: String,
    /// `whole`, or the kind of fragmentation.
    pub state: String,
    pub fragmented: bool,
    /// The cheapest of the other policies.
    pub best_stock: String,
    /// Ours divided by that policy: below 1 is better.
    pub relative_cost: Estimate,
}

/// Collects the workloads that ran under our policy and another one, in the order of the sections.
pub fn workloads(entries: &[Entry], which: &Workloads) -> Vec<Workload> {
    let of_entry = |ours: &Entry| {
        let (state, name) = ours.section.split_once('-')?;
        let best = best(entries, &ours.section, &which.stock)?;
        Some(Workload {
            name: name.to_owned(),
            state: state.to_owned(),
            fragmented: state != WHOLE,
            best_stock: best.policy.clone(),
            relative_cost: relative(ours, best)?,
        })
    };
    let ours = entries.iter().filter(|entry| entry.policy == which.ours);
    ours.filter_map(of_entry).collect()
}

fn best<'a>(entries: &'a [Entry], section: &str, stock: &[String]) -> Option<&'a Entry> {
    let cost = |entry: &Entry| {
        entry
            .counters
            .get(COST)
            .map_or(f64::INFINITY, |it| it.median)
    };
    entries
        .iter()
        .filter(|entry| entry.section == section && stock.contains(&entry.policy))
        .min_by(|one, other| cost(one).total_cmp(&cost(other)))
}

/// Compares interleaved runs; a single run gives its own ratio without an interval.
fn relative(ours: &Entry, best: &Entry) -> Option<Estimate> {
    let interval = ours.relative_to(best, COST)?;
    let (low, high) = match interval.high.is_finite() {
        true => (interval.low, interval.high),
        false => (interval.median, interval.median),
    };
    Some(Estimate {
        median: interval.median,
        low,
        high,
    })
}

/// Formats the workloads as a table.
pub fn workloads_table(workloads: &[Workload]) -> String {
    let mut text = "Instructions and modelled walks, by those under the best stock policy\n\n\
             | workload | memory | best stock | relative cost |\n|---|---|---|--:|\n"
        .to_owned();
    for it in workloads {
        let Estimate { median, low, high } = it.relative_cost;
        let range = match low == high {
            true => String::new(),
            false => format!(" [{low:.3}, {high:.3}]"),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {median:.3}{range} |",
            it.name, it.state, it.best_stock
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::results::Detail;

    fn entry(policy: &str, section: &str, costs: &[f64]) -> Entry {
        let mut entry = Entry::new("v", policy, section);
        for cost in costs {
            let counters: Counters = [(COST.to_owned(), *cost)].into();
            entry.add(counters, Detail::default(), false);
        }
        entry
    }

    fn which() -> Workloads {
        Workloads {
            ours: "econ".to_owned(),
            stock: ["never", "always"].map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn the_best_stock_policy_is_each_workloads_own() {
        let entries = [
            entry("never", "whole-xz", &[100.0]),
            entry("always", "whole-xz", &[80.0]),
            entry("econ", "whole-xz", &[60.0]),
            entry("never", "movable-xz", &[100.0]),
            entry("always", "movable-xz", &[200.0]),
            // A cheaper policy that the scenario does not compare with.
            entry("always-defrag", "movable-xz", &[1.0]),
            entry("econ", "movable-xz", &[105.0]),
        ];
        let found = workloads(&entries, &which());
        let [whole, movable] = &found[..] else {
            panic!("two workloads");
        };
        assert_eq!((whole.name.as_str(), whole.fragmented), ("xz", false));
        assert_eq!(whole.best_stock, "always");
        assert_eq!(whole.relative_cost, Estimate::exact(0.75));
        assert_eq!(
            (movable.state.as_str(), movable.fragmented),
            ("movable", true)
        );
        assert_eq!(movable.best_stock, "never");
        assert_eq!(movable.relative_cost, Estimate::exact(1.05));
        assert!(workloads_table(&found).contains("| xz | movable | never | 1.050 |"));
    }

    #[test]
    fn several_runs_have_an_interval() {
        let entries = [
            entry("never", "whole-a", &[100.0; 6]),
            entry("econ", "whole-a", &[90.0, 91.0, 89.0, 90.0, 92.0, 88.0]),
        ];
        let found = workloads(&entries, &which());
        let Estimate { median, low, high } = found[0].relative_cost;
        assert!((median - 0.9).abs() < 0.005, "{median}");
        assert!(low >= 0.88 && low < median && median < high && high <= 0.92);
    }

    #[test]
    fn what_has_nothing_to_be_compared_with_is_none() {
        let alone = [
            entry("econ", "whole-a", &[1.0]),
            entry("never", "main", &[1.0]),
        ];
        assert!(workloads(&alone, &which()).is_empty());
        // A section without a state is not a workload.
        let main = [
            entry("econ", "main", &[1.0]),
            entry("never", "main", &[1.0]),
        ];
        assert!(workloads(&main, &which()).is_empty());
        let zero = [
            entry("econ", "whole-a", &[1.0]),
            entry("never", "whole-a", &[0.0]),
        ];
        assert!(workloads(&zero, &which()).is_empty());
    }
}
