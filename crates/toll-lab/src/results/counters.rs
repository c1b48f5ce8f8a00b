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
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section in which the value of every plugin counter is its index in this list.
    fn section() -> (Section, BTreeMap<&'static str, f64>) {
        let names = SAME
            .into_iter()
            .chain(MISSES)
            .chain([
                "shadow_dtlb_load_misses",
                "shadow_dtlb_store_misses",
                "shadow_itlb_misses",
                "fault_instructions",
                "alloc_instructions",
            ])
            .chain([
                "shootdowns_eligible",
                "shootdowns_mixed",
                "shootdowns_unmap",
                "shootdowns_compaction",
                "shootdowns_compaction_eligible",
                "shootdowns_drain",
                "shootdowns_mm",
                "shootdowns_numa",
                "shootdowns_kernel",
            ]);
        let values: BTreeMap<&str, f64> = names
            .enumerate()
            .map(|(place, name)| (name, (1000 - place) as f64))
            .collect();
        let cpu = serde_json::to_string(&values).unwrap().replace(".0", "");
        let text = format!(
            r#"{{"cpus": [{cpu}, {cpu}], "tasks": [],
"faults": {{"max": 65, "buckets": [[10, 99], [64, 1]]}},
"allocs": {{"max": 130, "buckets": [[12, 9998], [13, 1], [128, 1]]}}}}"#
        );
        (serde_json::from_str(&text).unwrap(), values)
    }

    #[test]
    fn counters_add_up() {
        let (section, of_cpu) = section();
        let notes = [
            ("vmstat_pgsteal_kswapd".to_owned(), 5.0),
            ("vmstat_pgsteal_direct".to_owned(), 2.0),
            ("vmstat_pgmigrate_success".to_owned(), 3.0),
            ("packets".to_owned(), 1000.0),
        ];
        let preset = Preset::find("skylake").unwrap();
        let got = of_section(&section, Some(&notes.into()), &preset);
        let both = |name: &str| 2.0 * of_cpu[name];
        let causes: f64 = SHOOTDOWNS
            .iter()
            .map(|cause| both(&format!("shootdowns_{cause}")))
            .sum();
        assert_eq!(got["shootdown_irqs"], causes);
        assert_eq!(
            got["shootdown_irqs_other"],
            causes - both("shootdowns_eligible")
        );
        assert_eq!(got["shootdown_irqs_numa"], both("shootdowns_numa"));
        assert_eq!(got["dtlb_load_misses_flush_induced"], 6.0);
        assert_eq!(
            got["walks"],
            MISSES.iter().map(|miss| both(miss)).sum::<f64>()
        );
        assert_eq!(got["pages_reclaimed"], 7.0);
        assert_eq!(got["pages_migrated"], 3.0);
        assert_eq!(got["packets"], 1000.0);
        assert_eq!(got["fault_instr_p99"], 10.0);
        assert_eq!(got["fault_instr_max"], 65.0);
        assert_eq!(got["alloc_instr_p99"], 12.0);
        assert_eq!(got["alloc_instr_p9999"], 13.0);
        assert_eq!(got["alloc_instr_max"], 130.0);
        assert_eq!(got["fault_instr_total"], both("fault_instructions"));
        assert_eq!(got["alloc_instr_total"], both("alloc_instructions"));
        assert_eq!(got["alloc_failures"], both("alloc_failures"));
        let without = of_section(&section, None, &preset);
        assert_eq!(without["pages_reclaimed"], 0.0);
        assert!(without["modelled_ns"] > 0.0);
    }
}
