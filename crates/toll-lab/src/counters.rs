// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts the counts of the virtual PMU and the guest into a result's counters.

use std::collections::BTreeMap;

use crate::guest::Section;
use crate::preset::Preset;

/// Counters of one run by name. Counts are exact below 2^53.
pub type Counters = BTreeMap<String, f64>;

/// Flush interrupts, by the plugin's name of their cause.
const SHOOTDOWNS: [&str; 9] = [
    "eligible",
    "mixed",
    "unmap",
    "compaction",
    "compaction_eligible",
    "drain",
    "mm",
    "numa",
    "kernel",
];
const MISSES: [&str; 3] = ["dtlb_load_misses", "dtlb_store_misses", "itlb_misses"];
/// Counters with the same name in the plugin and in a result.
const SAME: [&str; 17] = [
    "walk_steps",
    "walks_4k",
    "walks_2m",
    "walks_1g",
    "invlpgs",
    "full_flushes",
    "cr3_writes",
    "instructions_user",
    "instructions_kernel",
    "page_faults",
    "allocs",
    "alloc_failures",
    "interrupts",
    "unmapped_ro",
    "unmapped_rw",
    "watched_load_misses",
    "watched_store_misses",
];

/// Counters that [`of_section`] computes from others.
const COMPUTED: [&str; 9] = [
    "shootdown_irqs",
    "shootdown_irqs_other",
    "walks",
    "fault_instr_total",
    "alloc_instr_total",
    "modelled_ns",
    "pages_reclaimed",
    "pages_migrated",
    "fault_instr_tail",
];
/// Suffixes of the counters that describe the instructions of a page fault or an allocation.
const QUANTILES: [&str; 3] = ["p99", "p9999", "max"];
/// Prefixes of counters that the guest writes; it may leave out those that are 0.
const WRITTEN: [&str; 8] = [
    "vmstat_",
    "luf_",
    "note_",
    "lines_",
    "latency_",
    "touch_",
    "touches_",
    "huge_pages",
];

/// Counters of a scenario's crashes, which are not those of a guest.
pub const CRASHES: [&str; 9] = [
    "operations",
    "crash_states",
    "mounted",
    "power_cuts",
    "lost",
    "planted",
    "caught",
    "interrupted",
    "done",
];

/// Whether a section can have a counter of this name.
pub fn is_known(name: &str) -> bool {
    let miss = name.strip_suffix("_flush_induced").unwrap_or(name);
    let shootdowns = name.strip_prefix("shootdown_irqs_");
    let quantile = ["fault_instr_", "alloc_instr_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    SAME.contains(&name)
        || COMPUTED.contains(&name)
        || CRASHES.contains(&name)
        || MISSES.contains(&miss)
        || shootdowns.is_some_and(|cause| SHOOTDOWNS.contains(&cause))
        || quantile.is_some_and(|quantile| QUANTILES.contains(&quantile))
        || WRITTEN.iter().any(|prefix| name.starts_with(prefix))
}

/// Computes the counters of one section. `notes` are the guest's own values; the kernel's counters
/// (/proc/vmstat) have the prefix `vmstat_`.
pub fn of_section(
    section: &Section,
    notes: Option<&BTreeMap<String, f64>>,
    preset: &Preset,
) -> Counters {
    let total = |counter: &str| section.total(counter) as f64;
    let mut counters: Counters = SAME
        .iter()
        .map(|name| ((*name).to_owned(), total(name)))
        .collect();
    let mut set = |name: &str, value: f64| {
        counters.insert(name.to_owned(), value);
    };
    let mut irqs = 0.0;
    for cause in SHOOTDOWNS {
        let count = total(&format!("shootdowns_{cause}"));
        set(&format!("shootdown_irqs_{cause}"), count);
        irqs += count;
    }
    set("shootdown_irqs", irqs);
    set("shootdown_irqs_other", irqs - total("shootdowns_eligible"));
    for miss in MISSES {
        set(miss, total(miss));
        let induced = total(miss) - total(&format!("shadow_{miss}"));
        set(&format!("{miss}_flush_induced"), induced);
    }
    set("walks", MISSES.iter().map(|miss| total(miss)).sum());
    for (what, latency) in [("fault", &section.faults), ("alloc", &section.allocs)] {
        set(&format!("{what}_instr_p99"), latency.quantile(0.99) as f64);
        set(
            &format!("{what}_instr_p9999"),
            latency.quantile(0.9999) as f64,
        );
        set(&format!("{what}_instr_max"), latency.max as f64);
    }
    set("fault_instr_total", total("fault_instructions"));
    set("alloc_instr_total", total("alloc_instructions"));
    set(
        "modelled_ns",
        preset.modelled_ns(
            total("instructions_user") + total("instructions_kernel"),
            total("walk_steps"),
            irqs,
        ),
    );
    let note = |name: &str| {
        notes
            .and_then(|notes| notes.get(name))
            .copied()
            .unwrap_or(0.0)
    };
    let reclaimed =
        ["kswapd", "direct", "khugepaged"].map(|by| note(&format!("vmstat_pgsteal_{by}")));
    set("pages_reclaimed", reclaimed.iter().sum());
    set("pages_migrated", note("vmstat_pgmigrate_success"));
    counters.extend(notes.cloned().unwrap_or_default());
    counters.extend(median_drain(&counters));
    counters.extend(lines_moved_often(&counters));
    counters
}

/// The median number of pages that a drain released, from the counts by size.
fn median_drain(counters: &Counters) -> Option<(String, f64)> {
    let of_size = |(name, count): (&String, &f64)| {
        let size: u64 = name.strip_prefix("luf_drains_")?.parse().ok()?;
        Some((size, *count))
    };
    let mut sizes: Vec<(u64, f64)> = counters.iter().filter_map(of_size).collect();
    sizes.sort_unstable_by_key(|(size, _)| *size);
    let mut left = sizes.iter().map(|(_, count)| count).sum::<f64>() / 2.0;
    let is_median = |(_, count): &&(u64, f64)| {
        left -= count;
        left <= 0.0
    };
    let (size, _) = sizes.iter().find(is_median)?;
    Some(("luf_drain_median_pages".to_owned(), *size as f64))
}

/// The lines that moved to another CPU once for 16 touched pages, or more often: two stores of
/// different CPUs rarely meet by chance in the emulation.
fn lines_moved_often(counters: &Counters) -> Option<(String, f64)> {
    let pages = counters.get("note_touched_pages")?;
    if !counters.contains_key("lines_moved") {
        return None;
    }
    let name = format!("lines_moved_{}", *pages as u64 / 16);
    let often = counters.get(&name).copied().unwrap_or(0.0);
    Some(("lines_moved_often".to_owned(), often))
}

#[cfg(test)]
mod tests;
