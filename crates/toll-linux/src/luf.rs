// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads `/sys/kernel/mm/luf`: the switch, limits and counters of the kernel's lazy unmap flush.

use std::collections::BTreeMap;

use crate::Root;

/// Sysfs directory of lazy unmap flush.
pub const DIRECTORY: &str = "/sys/kernel/mm/luf";

/// State of lazy unmap flush.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Luf {
    pub enabled: bool,
    /// Pages that wait for their flush or their release, in all zones.
    pub pool_pages: u64,
    /// Maximum size of a zone's pool, pages; 0: the default.
    pub pool_max_pages: u64,
    /// Number of pages from which on a flush pays; 0: the default.
    pub direct_batch_pages: u64,
    pub max_age_ms: u64,
    /// Counts since boot, by file name.
    pub counts: BTreeMap<String, u64>,
    /// Drains by size: smallest number of pages (exact to 1/8), number of drains.
    pub pages_per_drain: Vec<(u64, u64)>,
}

impl Luf {
    /// Reads the state; `None` if the kernel has no lazy unmap flush.
    pub fn read(root: &Root) -> Option<Luf> {
        let number = |name: &str| root.number(format!("{DIRECTORY}/{name}"));
        let stats = format!("{DIRECTORY}/stats");
        let counts = root
            .names(&stats)
            .into_iter()
            .filter_map(|name| Some((root.number(format!("{stats}/{name}"))?, name)))
            .map(|(count, name)| (name, count))
            .collect();
        let drains = root
            .read(format!("{stats}/pages_per_drain"))
            .unwrap_or_default();
        Some(Luf {
            enabled: number("enabled")? == 1,
            pool_pages: number("pool_pages")?,
            pool_max_pages: number("pool_max_pages")?,
            direct_batch_pages: number("direct_batch_pages")?,
            max_age_ms: number("max_age_ms")?,
            counts,
            pages_per_drain: drains.lines().filter_map(size_and_count).collect(),
        })
    }

    /// Returns a counter; 0 if this kernel does not have it.
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or_default()
    }

    /// Returns all counters with this name prefix, the largest first, with the prefix removed.
    pub fn of(&self, prefix: &str) -> Vec<(&str, u64)> {
        let mut found: Vec<(&str, u64)> = self
            .counts
            .iter()
            .filter_map(|(name, &count)| Some((name.strip_prefix(prefix)?, count)))
            .collect();
        found.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        found
    }
}

/// `1024 469`.
fn size_and_count(line: &str) -> Option<(u64, u64)> {
    let (size, count) = line.split_once(' ')?;
    Some((size.parse().ok()?, count.trim().parse().ok()?))
}

#[cfg(test)]
mod tests;
