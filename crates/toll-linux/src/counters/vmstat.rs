// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of `/proc/vmstat`.

use std::collections::HashMap;

use toll_model::losses::{Missing, Scope, Snapshot};

use crate::Root;

const FILE: &str = "/proc/vmstat";
const TLB: &str = "this kernel does not count its TLB flushes";
const TLB_FIX: &str = "a kernel built with CONFIG_DEBUG_TLBFLUSH";
const THP: &str = "this kernel has no transparent huge pages";
const THP_FIX: &str = "a kernel built with CONFIG_TRANSPARENT_HUGEPAGE";
const COMPACTION: &str = "this kernel does not compact memory";
const COMPACTION_FIX: &str = "a kernel built with CONFIG_COMPACTION";
const SWAP: &str = "this kernel has no swap";
const SWAP_FIX: &str = "a kernel built with CONFIG_SWAP";
const EVENTS: &str = "this kernel does not count memory events";
const EVENTS_FIX: &str = "a kernel built with CONFIG_VM_EVENT_COUNTERS";

/// Counter, name in the file, and the reason and fix if the file lacks it.
#[rustfmt::skip]
const ROWS: [(&str, &str, &str, &str); 18] = [
    ("page_faults", "pgfault", EVENTS, EVENTS_FIX),
    ("page_faults_major", "pgmajfault", EVENTS, EVENTS_FIX),
    ("direct_scanned_pages", "pgscan_direct", EVENTS, EVENTS_FIX),
    ("direct_reclaimed_pages", "pgsteal_direct", EVENTS, EVENTS_FIX),
    ("swap_ins", "pswpin", SWAP, SWAP_FIX),
    ("tlb_shootdowns_sent", "nr_tlb_remote_flush", TLB, TLB_FIX),
    ("tlb_remote_flushes_received", "nr_tlb_remote_flush_received", TLB, TLB_FIX),
    ("tlb_local_flushes_all", "nr_tlb_local_flush_all", TLB, TLB_FIX),
    ("tlb_local_flushes_one", "nr_tlb_local_flush_one", TLB, TLB_FIX),
    ("direct_compactions", "compact_stall", COMPACTION, COMPACTION_FIX),
    ("thp_fault_alloc", "thp_fault_alloc", THP, THP_FIX),
    ("thp_fault_fallback", "thp_fault_fallback", THP, THP_FIX),
    ("thp_collapses", "thp_collapse_alloc", THP, THP_FIX),
    ("thp_splits", "thp_split_page", THP, THP_FIX),
    ("thp_pmd_splits", "thp_split_pmd", THP, THP_FIX),
    ("thp_zero_pages", "thp_zero_page_alloc", THP, THP_FIX),
    ("thp_swap_outs", "thp_swpout", THP, THP_FIX),
    // The sum over zones.
    ("direct_reclaims", "", EVENTS, EVENTS_FIX),
];

/// Reads all counters of the machine.
pub(super) fn read(root: &Root, snapshot: &mut Snapshot) {
    let text = match root.read(FILE) {
        Ok(text) => text,
        Err(error) => return missing(&error.to_string(), snapshot),
    };
    let found = numbers(&text);
    for (name, key, reason, fix) in ROWS.iter().filter(|row| !row.1.is_empty()) {
        let value = found.get(key).copied();
        let value = value.ok_or_else(|| Missing::new(*reason, *fix));
        snapshot.set(Scope::Machine, *name, value);
    }
    let stalls = found
        .iter()
        .filter(|(key, _)| key.starts_with("allocstall"));
    let stalls: Vec<u64> = stalls.map(|(_, number)| *number).collect();
    let reclaims = match stalls.is_empty() {
        true => Err(Missing::new(EVENTS, EVENTS_FIX)),
        false => Ok(stalls.iter().sum()),
    };
    snapshot.set(Scope::Machine, "direct_reclaims", reclaims);
    set_minor(Scope::Machine, snapshot);
}

/// Sets the number of minor faults: all faults without the major ones.
pub(super) fn set_minor(scope: Scope, snapshot: &mut Snapshot) {
    let faults = snapshot.value(scope, "page_faults");
    let major = snapshot.value(scope, "page_faults_major");
    let minor = faults
        .zip(major)
        .map(|(all, major)| all.saturating_sub(major));
    let minor = minor.ok_or_else(|| Missing::new(EVENTS, EVENTS_FIX));
    snapshot.set(scope, "page_faults_minor", minor);
}

fn missing(error: &str, snapshot: &mut Snapshot) {
    let missing = Missing::new(
        format!("{FILE}: {error}"),
        "a complete /proc in the container",
    );
    let names: Vec<&str> = ROWS.iter().map(|row| row.0).collect();
    snapshot.miss(Scope::Machine, &names, &missing);
    snapshot.miss(Scope::Machine, &["page_faults_minor"], &missing);
}

/// Numbers by name, of lines such as `pgfault 17` or `PageTables:  6368 kB`.
pub(super) fn numbers(text: &str) -> HashMap<&str, u64> {
    let pair = |line| -> Option<(&str, u64)> {
        let (name, rest) = str::split_once(line, [' ', ':'])?;
        Some((name, rest.split_ascii_whitespace().next()?.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}
