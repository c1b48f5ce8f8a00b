// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of a section: the virtual PMU's counts and the guest's own values.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::files;

/// Counters of the virtual PMU by name.
pub type Counts = BTreeMap<String, u64>;

/// What the virtual PMU counted in one section.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Section {
    /// Counters of each CPU.
    pub cpus: Vec<Counts>,
    tasks: Vec<Task>,
    /// Page faults by kernel instructions.
    pub faults: Latency,
    /// Allocations requested by lab/guest/alloc.c, by kernel instructions.
    pub allocs: Latency,
}

/// A histogram of events by the instructions they took.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Instructions of the longest event.
    pub max: u64,
    /// Smallest value of each bucket, and its count.
    buckets: Vec<(u64, u64)>,
}

/// Counters of one task.
#[derive(Debug, Clone, Deserialize)]
struct Task {
    name: String,
    #[serde(flatten)]
    counts: Counts,
}

impl Section {
    /// Lists the available counters.
    pub fn counters(&self) -> impl Iterator<Item = &str> {
        self.cpus
            .iter()
            .take(1)
            .flat_map(|cpu| cpu.keys().map(String::as_str))
    }

    /// Returns a counter's sum over all CPUs.
    ///
    /// # Panics
    /// If the plugin has no such counter.
    pub fn total(&self, counter: &str) -> u64 {
        self.cpus.iter().map(|cpu| cpu[counter]).sum()
    }

    /// Groups the counters by task name. Counts of an idle CPU belong to its idle task.
    pub fn by_process(&self) -> BTreeMap<String, Counts> {
        let mut found: BTreeMap<String, Counts> = BTreeMap::new();
        for task in &self.tasks {
            let counts = found.entry(task.name.clone()).or_default();
            for (counter, count) in task.counts.iter().filter(|(name, _)| !is_id(name)) {
                *counts.entry(counter.clone()).or_default() += count;
            }
        }
        found
    }
}

impl Latency {
    /// Returns the number of events.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Returns the instructions that this share (0..1) of the events need at most; exact to 1/64,
    /// rounded up. 0 if there were no events.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for &(low, count) in &self.buckets {
            seen += count;
            if seen >= wanted.max(1) {
                return last_of_bucket(low).min(self.max);
            }
        }
        0
    }

    /// Returns the instructions of the event at this rank, counted from the longest; exact to 1/64,
    /// rounded up. 0 if there are fewer events.
    pub fn kth_longest(&self, place: u64) -> u64 {
        let mut seen = 0;
        for &(low, count) in self.buckets.iter().rev() {
            seen += count;
            if seen >= place.max(1) {
                return last_of_bucket(low).min(self.max);
            }
        }
        0
    }

    /// Returns pairs of an instruction count and the share of events that need more.
    pub fn tail(&self) -> Vec<(u64, f64)> {
        let total = self.count();
        let mut left = total;
        let after = |&(low, count): &(u64, u64)| {
            left -= count;
            (last_of_bucket(low), left as f64 / total as f64)
        };
        self.buckets.iter().map(after).collect()
    }
}

/// Whether a field identifies the task, as opposed to counting what it did.
fn is_id(field: &str) -> bool {
    matches!(field, "tgid" | "pid")
}

/// Returns the largest value of a bucket (plugins/system/histogram.h), given its smallest.
fn last_of_bucket(low: u64) -> u64 {
    match low.checked_ilog2() {
        Some(power @ 6..) => low + (1 << (power - 6)) - 1,
        _ => low,
    }
}

/// Reads the files NAME.json that the plugin wrote.
pub(super) fn read_all(directory: &Path) -> Result<BTreeMap<String, Section>> {
    let mut found = BTreeMap::new();
    for file in files::below(directory)? {
        if file.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let path = directory.join(&file);
        let section = serde_json::from_str(&files::read_text(&path)?)
            .with_context(|| format!("{}: is not a file of counts", path.display()))?;
        found.insert(file.with_extension("").display().to_string(), section);
    }
    Ok(found)
}

/// Reads the files NAME.SUFFIX: `notes`, which the guest's programs wrote, or `lines`, from the
/// plugin that counts cache lines. Each line is a name and a number, or a comment.
pub(super) fn read_notes(
    out: &Path,
    suffix: &str,
) -> Result<BTreeMap<String, BTreeMap<String, f64>>, String> {
    let mut found = BTreeMap::new();
    for file in files::below(out).map_err(|error| format!("{error:#}"))? {
        if file.extension().is_none_or(|it| it != suffix) {
            continue;
        }
        let path = out.join(&file);
        let text = files::read_text(&path).map_err(|error| format!("{error:#}"))?;
        let notes = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| parse_note(line).ok_or(format!("{}: {line:?}: not a note", path.display())))
            .collect::<Result<_, _>>()?;
        found.insert(file.with_extension("").display().to_string(), notes);
    }
    Ok(found)
}

fn parse_note(line: &str) -> Option<(String, f64)> {
    let (name, value) = line.split_once(' ')?;
    Some((name.to_owned(), value.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(buckets: &[(u64, u64)], max: u64) -> Latency {
        Latency {
            max,
            buckets: buckets.to_vec(),
        }
    }

    #[test]
    fn quantiles_are_rounded_up_to_the_end_of_a_bucket() {
        let faults = latency(&[(10, 90), (1024, 9), (65536, 1)], 66000);
        assert_eq!(faults.quantile(0.5), 10);
        assert_eq!(faults.quantile(0.99), 1024 + 15);
        // A bucket of 1024 values; none was above the largest.
        assert_eq!(faults.quantile(0.9999), 66000);
        assert_eq!(faults.count(), 100);
        assert_eq!(latency(&[], 0).quantile(0.99), 0);
    }

    #[test]
    fn the_longest_are_counted_from_the_end() {
        let faults = latency(&[(10, 90), (1024, 9), (65536, 1)], 66000);
        assert_eq!(faults.kth_longest(1), 66000);
        assert_eq!(faults.kth_longest(2), 1039);
        assert_eq!(faults.kth_longest(10), 1039);
        assert_eq!(faults.kth_longest(11), 10);
        assert_eq!(faults.kth_longest(101), 0);
        // Rank 0 does not exist: the longest is returned.
        assert_eq!(faults.kth_longest(0), 66000);
    }

    #[test]
    fn the_tail_is_what_needs_more() {
        let tail = latency(&[(10, 3), (1024, 1)], 1030).tail();
        assert_eq!(tail, [(10, 0.25), (1039, 0.0)]);
    }

    #[test]
    fn notes_are_those_of_one_suffix_without_comments() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
        write("main.lines", "lines_shared 3\n# 0xffff 0x3 4 2 0xfff0\n").unwrap();
        write("main.notes", "note_bytes 8\n").unwrap();
        let got = read_notes(directory.path(), "lines").unwrap();
        let lines: BTreeMap<_, _> = [("lines_shared".to_owned(), 3.0)].into();
        assert_eq!(got, [("main".to_owned(), lines)].into());
        write("main.lines", "lines_shared\n").unwrap();
        assert!(read_notes(directory.path(), "lines").is_err());
    }

    #[test]
    fn a_section_is_read_as_the_plugin_writes_it() {
        let text = r#"{"section": "main", "cpus": [
  {"walk_steps": 5, "invlpgs": 1},
  {"walk_steps": 7, "invlpgs": 0}
], "tasks": [
  {"tgid": 7, "pid": 8, "name": "model", "walk_steps": 4, "invlpgs": 0},
  {"tgid": 7, "pid": 9, "name": "model", "walk_steps": 2, "invlpgs": 1}
],
"faults": {"max": 17, "buckets": [[16, 2]]},
"allocs": {"max": 0, "buckets": []}}"#;
        let section: Section = serde_json::from_str(text).unwrap();
        assert_eq!(section.total("walk_steps"), 12);
        let model = [("invlpgs".to_owned(), 1), ("walk_steps".to_owned(), 6)];
        assert_eq!(section.by_process()["model"], model.into());
        assert_eq!(
            section.counters().collect::<Vec<_>>(),
            ["invlpgs", "walk_steps"]
        );
        assert_eq!(section.faults.quantile(1.0), 16);
        assert_eq!(section.allocs.count(), 0);
    }

    #[test]
    fn notes_are_names_with_numbers() {
        assert_eq!(parse_note("pgfault 12"), Some(("pgfault".to_owned(), 12.0)));
        assert_eq!(parse_note("bytes 1.5e9"), Some(("bytes".to_owned(), 1.5e9)));
        for garbage in ["", "pgfault", "pgfault x", " "] {
            assert_eq!(parse_note(garbage), None, "{garbage:?}");
        }
    }
}
