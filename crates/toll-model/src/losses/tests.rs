// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::REGION;
use crate::cost::{CostTable, Measured, TlbGeometry};

fn costs() -> EventCosts {
    let exact = |ns: f64| Measured {
        median: ns,
        low: ns * 0.5,
        high: ns * 2.0,
    };
    let tlb = TlbGeometry::preset("zen4").expect("known");
    let mut table = CostTable::default_for("cpu", "6.12", 1 << 34, tlb);
    table.fault_4k = exact(1_000.0);
    table.fault_2m_warm = exact(200_000.0);
    table.fault_2m_cold = exact(1_000_000.0);
    table.events.shootdown_sent = Some(exact(4_000.0));
    table.events.shootdown_received = Some(exact(1_000.0));
    EventCosts::of(&table)
}

/// A snapshot of a scope with these values.
fn snapshot(scope: Scope, values: &[(&str, u64)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (name, value) in values {
        snapshot.set(scope, *name, Ok(*value));
    }
    snapshot
}

/// The counters of a scope that had these values before and after.
fn between(scope: Scope, before: &[(&str, u64)], after: &[(&str, u64)]) -> Vec<Counter> {
    counters(&snapshot(scope, before), &snapshot(scope, after), &costs())
}

fn named<'a>(counters: &'a [Counter], name: &str) -> &'a Counter {
    let found = counters.iter().find(|counter| counter.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {counters:?}"))
}

#[test]
fn a_change_is_the_increase_and_a_level_is_the_state() {
    let before = [
        ("page_faults_major", 40),
        ("page_tables", 8192),
        ("swap_ins", 9),
    ];
    let after = [
        ("page_faults_major", 50),
        ("page_tables", 4096),
        ("swap_ins", 7),
    ];
    let found = between(Scope::Machine, &before, &after);
    assert_eq!(named(&found, "page_faults_major").value, Some(10.0));
    assert_eq!(named(&found, "page_tables").value, Some(4096.0));
    assert_eq!(named(&found, "swap_ins").value, Some(0.0), "it fell");
}

#[test]
fn huge_faults_cost_what_huge_faults_cost() {
    let before = [("page_faults_minor", 0), ("thp_fault_alloc", 0)];
    let after = [("page_faults_minor", 1_010), ("thp_fault_alloc", 10)];
    let found = between(Scope::Machine, &before, &after);
    let loss = named(&found, "page_faults_minor").loss.expect("a loss");
    assert_eq!(loss.ns, 1_000.0 * 1_000.0 + 10.0 * 200_000.0);
    assert_eq!(loss.low, 1_000.0 * 500.0 + 10.0 * 100_000.0);
    assert_eq!(loss.high, 1_000.0 * 2_000.0 + 10.0 * 2_000_000.0);
    let huge = named(&found, "thp_fault_alloc");
    assert_eq!(huge.loss, None, "it is a part of the minor faults");
    assert_eq!(huge.definition.part_of, Some("page_faults_minor"));
}

/// A process has no count of huge faults: its huge-page-backed memory shows the likely number, the
/// machine's count the largest.
#[test]
fn huge_faults_of_a_process_are_bounded_by_those_of_the_machine() {
    let mut before = snapshot(
        Scope::Tree,
        &[("page_faults_minor", 0), ("mapped_huge_anon", 0)],
    );
    let mut after = snapshot(
        Scope::Tree,
        &[("page_faults_minor", 100), ("mapped_huge_anon", 5 * REGION)],
    );
    let with =
        |machine: &mut Snapshot, number| machine.set(Scope::Machine, "thp_fault_alloc", Ok(number));
    with(&mut before, 100);
    with(&mut after, 120);
    let found = counters(&before, &after, &costs());
    let loss = named(&found, "page_faults_minor").loss.expect("a loss");
    assert_eq!(loss.ns, 95.0 * 1_000.0 + 5.0 * 200_000.0);
    assert_eq!(loss.high, 80.0 * 2_000.0 + 20.0 * 2_000_000.0);
}

#[test]
fn senders_wait_once_for_each_shootdown_and_at_most_once_for_each_receiver() {
    let mut after = snapshot(Scope::Machine, &[("tlb_shootdowns_received", 800)]);
    after.cpus = 5;
    let before = snapshot(Scope::Machine, &[("tlb_shootdowns_received", 0)]);
    let found = counters(&before, &after, &costs());
    let loss = named(&found, "tlb_shootdowns_received")
        .loss
        .expect("a loss");
    assert_eq!(loss.low, 800.0 * 500.0 + 200.0 * 2_000.0);
    assert_eq!(loss.ns, 800.0 * 1_000.0 + 400.0 * 4_000.0);
    assert_eq!(loss.high, 800.0 * 2_000.0 + 800.0 * 8_000.0);
}

#[test]
fn counted_senders_are_a_line_of_their_own() {
    let before = [("tlb_shootdowns_received", 0), ("tlb_shootdowns_sent", 0)];
    let after = [
        ("tlb_shootdowns_received", 800),
        ("tlb_shootdowns_sent", 300),
    ];
    let found = between(Scope::Machine, &before, &after);
    let loss = |name| named(&found, name).loss.expect("a loss").ns;
    assert_eq!(loss("tlb_shootdowns_received"), 800.0 * 1_000.0);
    assert_eq!(loss("tlb_shootdowns_sent"), 300.0 * 4_000.0);
}

#[test]
fn page_walks_lose_their_share_of_user_time_at_most() {
    let zeros = [
        ("cycles", 0),
        ("instructions", 0),
        ("page_walk_cycles", 0),
        ("dtlb_misses", 0),
        ("cpu_user", 0),
        ("cpu_system", 0),
    ];
    let after = [
        ("cycles", 4_000),
        ("instructions", 8_000),
        ("page_walk_cycles", 1_000),
        ("dtlb_misses", 24),
        ("cpu_user", 2_000_000_000),
        ("cpu_system", 0),
    ];
    let found = between(Scope::Tree, &zeros, &after);
    let walks = named(&found, "page_walk_cycles").loss.expect("a loss");
    assert_eq!((walks.low, walks.ns, walks.high), (0.0, 5e8, 5e8));
    assert_eq!(named(&found, "page_walk_share").value, Some(0.25));
    let misses = named(&found, "dtlb_misses_per_1000_instructions");
    assert_eq!(misses.value, Some(3.0));
    let misses = named(&found, "dtlb_misses").loss;
    assert_eq!(misses, None, "their cycles are counted");
}

#[test]
fn misses_are_estimated_where_their_cycles_are_not_counted() {
    let found = between(
        Scope::Tree,
        &[("dtlb_misses", 0)],
        &[("dtlb_misses", 1_000)],
    );
    let loss = named(&found, "dtlb_misses").loss.expect("a loss");
    let walk = costs().walk;
    assert_eq!(
        (loss.low, loss.high),
        (1_000.0 * walk.low, 1_000.0 * walk.high)
    );
    assert!(walk.low > 0.0 && walk.low < walk.median && walk.median < walk.high);
}

#[test]
fn no_loss_exceeds_the_time_in_its_mode() {
    let before = [("page_faults_minor", 0), ("cpu_user", 0), ("cpu_system", 0)];
    let after = [
        ("page_faults_minor", 1_000_000),
        ("cpu_user", 50_000_000),
        ("cpu_system", 40_000_000),
    ];
    let found = between(Scope::Tree, &before, &after);
    let loss = named(&found, "page_faults_minor").loss.expect("a loss");
    assert_eq!(loss.ns, 50_000_000.0, "system time and a tick");
    assert_eq!(loss.high, 50_000_000.0);
}

#[test]
fn what_is_missing_keeps_its_reason() {
    let missing = Missing::new("no PMU", "another machine");
    let mut before = snapshot(Scope::Machine, &[("swap_ins", 1)]);
    let mut after = snapshot(Scope::Machine, &[("swap_ins", 1), ("page_tables", 1)]);
    before.set(Scope::Machine, "cycles", Err(missing.clone()));
    after.set(Scope::Machine, "cycles", Err(missing.clone()));
    before.set(Scope::Machine, "page_faults", Err(missing.clone()));
    after.set(Scope::Machine, "page_faults", Ok(7));
    after.set(Scope::Machine, "direct_reclaims", Ok(7));
    let found = counters(&before, &after, &costs());
    for name in ["cycles", "page_faults"] {
        let counter = named(&found, name);
        assert_eq!(
            (counter.value, &counter.missing),
            (None, &Some(missing.clone()))
        );
    }
    let reason = &named(&found, "direct_reclaims")
        .missing
        .as_ref()
        .expect("missing")
        .reason;
    assert!(reason.contains("appeared"), "{reason}");
}

/// A counter with a loss is never a part of another one with a loss, and the total adds each once.
#[test]
fn nothing_is_counted_twice() {
    let names: Vec<String> = [
        "cpu_user",
        "cpu_system",
        "cycles",
        "instructions",
        "page_walk_cycles",
        "dtlb_misses",
        "itlb_misses",
        "page_faults",
        "page_faults_minor",
        "faults_timed",
        "fault_time",
        "fault_time_slept",
        "fault_time_squares",
        "thp_fault_alloc",
        "page_faults_major",
        "swap_ins",
        "tlb_shootdowns_received",
        "tlb_shootdowns_sent",
        "tlb_local_flushes_one",
        "direct_compactions",
        "direct_reclaims",
        "direct_reclaimed_pages",
        "direct_scanned_pages",
        "delay_compaction",
        "delay_reclaim",
        "delay_swap_in",
        "pressure_some",
        "thp_collapses",
        "cpu_khugepaged",
        "cpu_kcompactd",
        "cpu_kswapd",
        "mapped_huge_anon",
        "mthp_64kB_anon_fault_alloc",
        "mthp_64kB_nr_anon",
    ]
    .map(str::to_owned)
    .to_vec();
    let (mut before, mut after) = (Snapshot::default(), Snapshot::default());
    for name in &names {
        before.set(Scope::Machine, name.clone(), Ok(0));
        after.set(Scope::Machine, name.clone(), Ok(1_000));
    }
    after.set(Scope::Machine, "cpu_user", Ok(1 << 40));
    let found = counters(&before, &after, &costs());
    for counter in found.iter().filter(|counter| counter.loss.is_some()) {
        if let Some(whole) = counter.definition.part_of {
            let contained = found.iter().find(|it| it.name == whole);
            let double = contained.is_some_and(|it| it.loss.is_some());
            assert!(!double, "{} and {whole}", counter.name);
        }
    }
    let sum: f64 = found
        .iter()
        .filter_map(|it| it.loss)
        .map(|loss| loss.ns)
        .sum();
    assert_eq!(total(&found, Scope::Machine).expect("losses").ns, sum);
    assert_eq!(total(&found, Scope::Tree), None);
}

#[test]
fn sizes_are_shown_from_the_smallest_with_levels_apart() {
    let values = [
        ("mthp_2048kB_split", 4),
        ("mthp_64kB_nr_anon", 3),
        ("mthp_64kB_anon_fault_alloc", 2),
        ("cpu_kswapd", 1),
        ("thp_splits", 1),
        ("mthp_nonsense", 1),
    ];
    let found = between(Scope::Machine, &values, &values);
    let names: Vec<&str> = found.iter().map(|counter| counter.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "thp_splits",
            "mthp_64kB_anon_fault_alloc",
            "mthp_64kB_nr_anon",
            "mthp_2048kB_split",
            "cpu_kswapd"
        ]
    );
    assert_eq!(named(&found, "mthp_64kB_nr_anon").value, Some(3.0));
    assert_eq!(named(&found, "mthp_2048kB_split").value, Some(0.0));
}

#[test]
fn each_cpu_has_its_own_increase() {
    let reading = |by_cpu: Vec<u64>| Reading {
        by_cpu: by_cpu.clone(),
        ..Reading::new(Ok(by_cpu.iter().sum()))
    };
    let (mut before, mut after) = (Snapshot::default(), Snapshot::default());
    let name = "tlb_shootdowns_received";
    before.set_reading(Scope::Machine, name, reading(vec![5, 10]));
    after.set_reading(Scope::Machine, name, reading(vec![7, 10, 4]));
    let found = counters(&before, &after, &costs());
    assert_eq!(named(&found, name).by_cpu, [2, 0, 4]);
}

/// Of 16,000 faults 1,000 were timed: 500 of 640 ns and 500 of 1,280 ns.
#[test]
fn timed_faults_replace_the_assumed_cost() {
    let squares = 500 * (10 * 10 + 20 * 20);
    let before = [
        ("page_faults_minor", 0),
        ("faults_timed", 0),
        ("fault_time", 0),
        ("fault_time_squares", 0),
        ("fault_time_slept", 0),
    ];
    let after = |timed| {
        [
            ("page_faults_minor", 16_000),
            ("faults_timed", timed),
            ("fault_time", timed * 960),
            ("fault_time_squares", squares),
            ("fault_time_slept", 50_000),
        ]
    };
    let found = between(Scope::Tree, &before, &after(1_000));
    let loss = named(&found, "page_faults_minor").loss.expect("a loss");
    assert_eq!(loss.ns, 16_000.0 * 960.0);
    // The deviation is 320 ns.
    let error = 16_000.0 * 1.2816 * 320.0 / 1_000f64.sqrt();
    assert!((loss.ns - loss.low - error).abs() < 1.0, "{loss:?}");
    let slept = 16_000.0 * 50.0;
    assert!(
        (loss.high - loss.ns - error - slept).abs() < 1.0,
        "{loss:?}"
    );
    assert!(found.iter().all(|it| it.name != "fault_time_squares"));
    let found = between(Scope::Tree, &before, &after(29));
    let loss = named(&found, "page_faults_minor").loss.expect("a loss");
    assert_eq!(loss.ns, 16_000.0 * 1_000.0, "too few were timed");
}

#[test]
fn a_measured_time_replaces_the_cost_of_its_events() {
    let events = [("direct_compactions", 4), ("direct_reclaimed_pages", 100)];
    let times = [("delay_compaction", 3_000), ("delay_reclaim", 5_000)];
    let none = |values: &[(&'static str, u64)]| -> Vec<(&'static str, u64)> {
        values.iter().map(|(name, _)| (*name, 0)).collect()
    };
    let all = [events, times].concat();
    let found = between(Scope::Machine, &none(&all), &all);
    for (name, _) in events {
        assert_eq!(named(&found, name).loss, None, "{name}");
    }
    assert_eq!(total(&found, Scope::Machine).expect("losses").ns, 8_000.0);
    let found = between(Scope::Machine, &none(&events), &events);
    assert!(found.iter().all(|counter| counter.loss.is_some()));
}
