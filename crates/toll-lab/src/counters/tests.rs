// SPDX-License-Identifier: MIT OR Apache-2.0
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

#[test]
fn every_counter_of_a_section_is_known() {
    let preset = Preset::find("skylake").unwrap();
    for name in of_section(&section().0, None, &preset).keys() {
        assert!(is_known(name), "{name}");
    }
    for name in ["vmstat_pgfault", "note_rounds", "fault_instr_tail"] {
        assert!(is_known(name), "{name}");
    }
    for name in ["walk", "shootdown_irqs_none", "fault_instr_p50", ""] {
        assert!(!is_known(name), "{name}");
    }
}

#[test]
fn the_median_drain_and_lines_that_move_often_follow_from_other_counters() {
    let preset = Preset::find("skylake").unwrap();
    let notes = [
        ("luf_drains_8", 3.0),
        ("luf_drains_1024", 2.0),
        ("luf_drains_3840", 6.0),
        ("note_touched_pages", 16_384.0),
        ("lines_moved", 900.0),
        ("lines_moved_1024", 2.0),
    ];
    let mut notes: BTreeMap<String, f64> =
        notes.map(|(name, value)| (name.to_owned(), value)).into();
    let got = of_section(&section().0, Some(&notes), &preset);
    assert_eq!(got["luf_drain_median_pages"], 3840.0);
    assert_eq!(got["lines_moved_often"], 2.0);
    notes.insert("luf_drains_8".to_owned(), 13.0);
    notes.remove("lines_moved_1024");
    let got = of_section(&section().0, Some(&notes), &preset);
    assert_eq!(got["luf_drain_median_pages"], 8.0);
    assert_eq!(got["lines_moved_often"], 0.0);
    let without = of_section(&section().0, None, &preset);
    assert!(!without.contains_key("luf_drain_median_pages"));
    assert!(!without.contains_key("lines_moved_often"));
}
