// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparable tails of page faults: a policy with fewer faults has another quantile at the same
//! rank, so all policies use the rank of one policy.

use super::Entry;

/// One fault in ten thousand.
const SHARE: f64 = 1e-4;
pub const NAME: &str = "fault_instr_tail";

/// Adds `fault_instr_tail` to every entry: the k-th longest fault, where k is the share above times
/// the faults in the same section under `policy` in the first variant that has it; at least 1.
pub fn add_tails(entries: &mut [Entry], policy: &str) {
    let places: Vec<Option<u64>> = entries
        .iter()
        .map(|entry| place(entries, policy, &entry.section))
        .collect();
    for (entry, place) in entries.iter_mut().zip(places) {
        let Some(place) = place else {
            continue;
        };
        for (run, faults) in entry.runs.iter_mut().zip(&entry.faults) {
            run.insert(NAME.to_owned(), faults.kth_longest(place) as f64);
        }
        entry.summarize();
    }
}

fn place(entries: &[Entry], policy: &str, section: &str) -> Option<u64> {
    let is = |entry: &&Entry| entry.policy == policy && entry.section == section;
    let faults = entries.iter().find(is)?.counters.get("page_faults")?.median;
    Some(((faults * SHARE).ceil() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;
    use crate::guest::Latency;
    use crate::results::Detail;

    fn entry(policy: &str, section: &str, buckets: &str, faults: f64) -> Entry {
        let mut entry = Entry::new("vanilla", policy, section);
        let counters: Counters = [("page_faults".to_owned(), faults)].into();
        entry.add(counters, Detail::default(), false);
        let text = format!(r#"{{"max": 40, "buckets": {buckets}}}"#);
        let faults: Latency = serde_json::from_str(&text).unwrap();
        entry.faults.push(faults);
        entry
    }

    fn tail(entry: &Entry) -> Option<f64> {
        entry.counters.get(NAME).map(|it| it.median)
    }

    #[test]
    fn the_place_is_that_of_one_policy() {
        // 20,000 faults under the policy: the second longest of each.
        let mut entries = [
            entry("always", "main", "[[10, 3], [30, 1], [40, 1]]", 5.0),
            entry("never", "main", "[[10, 19998], [20, 1], [25, 1]]", 20_000.0),
            entry("always", "other", "[[10, 1]]", 1.0),
        ];
        add_tails(&mut entries, "never");
        assert_eq!(tail(&entries[0]), Some(30.0));
        assert_eq!(tail(&entries[1]), Some(20.0));
        assert_eq!(entries[0].values(NAME), [30.0]);
        // A section that does not exist under the policy.
        assert_eq!(tail(&entries[2]), None);
    }

    #[test]
    fn a_few_faults_have_their_longest() {
        let mut entries = [entry("never", "main", "[[10, 3], [30, 1]]", 4.0)];
        add_tails(&mut entries, "never");
        assert_eq!(tail(&entries[0]), Some(30.0));
        add_tails(&mut entries, "absent");
        assert_eq!(tail(&entries[0]), Some(30.0));
    }
}
