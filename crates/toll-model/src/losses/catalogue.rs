// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every counter: its name, title, unit and place.

use super::{Kind, Unit};

/// A heading under which counters are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Cpu,
    Walks,
    Faults,
    Shootdowns,
    Reclaim,
    HugePages,
    Sizes,
    Threads,
    Mapped,
}

/// What the catalogue knows about a counter.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub title: String,
    pub unit: Unit,
    pub kind: Kind,
    pub group: Group,
    /// The counter that contains this one.
    pub part_of: Option<&'static str>,
    /// Order of display.
    pub place: (usize, String),
}

type Row = (&'static str, &'static str, Unit, Kind, Group, &'static str);

use Group::{Cpu, Faults, HugePages, Mapped, Reclaim, Shootdowns, Threads, Walks};
use Kind::{Change, Level};
use Unit::{Bytes, Count, Ns, Pages, PerThousandInstructions, Ratio};

/// Name, title, unit, kind, group, and the counter that contains this one.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("cpu_user", "CPU time in user mode", Ns, Change, Cpu, ""),
    ("cpu_system", "CPU time in the kernel", Ns, Change, Cpu, ""),
    ("context_switches", "context switches", Count, Change, Cpu, ""),
    ("bpf_lost", "events that BPF programs lost", Count, Level, Cpu, ""),
    ("cycles", "cycles in user mode", Count, Change, Walks, ""),
    ("instructions", "instructions in user mode", Count, Change, Walks, ""),
    ("page_walk_cycles", "page-walk cycles", Count, Change, Walks, "cycles"),
    ("page_walk_share", "page walks, share of cycles", Ratio, Change, Walks, "page_walk_cycles"),
    ("dtlb_misses", "data TLB misses", Count, Change, Walks, ""),
    ("dtlb_misses_per_1000_instructions", "dTLB misses per 1,000 instructions", PerThousandInstructions, Change, Walks, "dtlb_misses"),
    ("itlb_misses", "instruction TLB misses", Count, Change, Walks, ""),
    ("itlb_misses_per_1000_instructions", "iTLB misses per 1,000 instructions", PerThousandInstructions, Change, Walks, "itlb_misses"),
    ("page_faults", "page faults", Count, Change, Faults, ""),
    ("page_faults_minor", "minor page faults", Count, Change, Faults, "page_faults"),
    ("thp_fault_alloc", "faults that allocated a huge page", Count, Change, Faults, "page_faults_minor"),
    ("faults_timed", "faults that were timed", Count, Change, Faults, "page_faults_minor"),
    ("fault_time", "time of the timed faults", Ns, Change, Faults, "page_faults_minor"),
    ("fault_time_slept", "time of timed faults that slept", Ns, Change, Faults, "page_faults_minor"),
    ("page_faults_major", "major page faults", Count, Change, Faults, "page_faults"),
    ("swap_ins", "pages read from swap", Pages, Change, Faults, "page_faults_major"),
    ("tlb_shootdowns_received", "TLB shootdowns received", Count, Change, Shootdowns, ""),
    ("tlb_shootdowns_sent", "TLB shootdowns sent", Count, Change, Shootdowns, ""),
    ("tlb_remote_flushes_received", "TLB flushes for other CPUs", Count, Change, Shootdowns, "tlb_shootdowns_received"),
    ("tlb_local_flushes_all", "local flushes of the whole TLB", Count, Change, Shootdowns, ""),
    ("tlb_local_flushes_one", "local flushes of one TLB entry", Count, Change, Shootdowns, ""),
    ("direct_compactions", "direct compactions", Count, Change, Reclaim, ""),
    ("direct_reclaims", "direct reclaims", Count, Change, Reclaim, "direct_reclaimed_pages"),
    ("direct_scanned_pages", "pages scanned by direct reclaim", Pages, Change, Reclaim, "direct_reclaimed_pages"),
    ("direct_reclaimed_pages", "pages freed by direct reclaim", Pages, Change, Reclaim, ""),
    ("delay_compaction", "time in direct compaction", Ns, Change, Reclaim, ""),
    ("delay_reclaim", "time in direct reclaim", Ns, Change, Reclaim, ""),
    ("delay_swap_in", "wait for swap", Ns, Change, Reclaim, ""),
    ("delay_thrashing", "wait for evicted file pages", Ns, Change, Reclaim, ""),
    ("pressure_some", "memory pressure, some tasks stalled", Ns, Change, Reclaim, ""),
    ("pressure_full", "memory pressure, all tasks stalled", Ns, Change, Reclaim, "pressure_some"),
    ("thp_fault_fallback", "faults without a free huge page", Count, Change, HugePages, ""),
    ("thp_collapses", "huge pages by collapse", Count, Change, HugePages, ""),
    ("thp_splits", "huge pages split", Count, Change, HugePages, ""),
    ("thp_pmd_splits", "huge mappings split", Count, Change, HugePages, ""),
    ("thp_zero_pages", "huge zero pages allocated", Count, Change, HugePages, ""),
    ("mthp", "huge pages by size", Count, Change, HugePages, ""),
    ("thp_swap_outs", "huge pages swapped whole", Count, Change, HugePages, ""),
    ("cpu_khugepaged", "CPU time of khugepaged", Ns, Change, Threads, ""),
    ("cpu_kcompactd", "CPU time of kcompactd", Ns, Change, Threads, ""),
    ("cpu_kswapd", "CPU time of kswapd", Ns, Change, Threads, ""),
    ("mapped_huge_anon", "anonymous memory in huge pages", Bytes, Level, Mapped, ""),
    ("mapped_huge_shmem", "shared memory in huge pages", Bytes, Level, Mapped, ""),
    ("mapped_huge_file", "file memory in huge pages", Bytes, Level, Mapped, ""),
    ("mapped_hugetlb", "memory in hugetlb pages", Bytes, Level, Mapped, ""),
    ("page_tables", "page tables", Bytes, Level, Mapped, ""),
];

/// Returns the definition of a counter; `None` for a name that is not one.
pub fn definition(name: &str) -> Option<Definition> {
    match ROWS.iter().position(|row| row.0 == name) {
        Some(place) => Some(of_row(place)),
        None => of_size(name),
    }
}

fn of_row(place: usize) -> Definition {
    let (_, title, unit, kind, group, part_of) = ROWS[place];
    Definition {
        title: title.to_owned(),
        unit,
        kind,
        group,
        part_of: (!part_of.is_empty()).then_some(part_of),
        place: (place, String::new()),
    }
}

/// A statistic of one size of huge pages: `mthp_64kB_anon_fault_alloc`, as the kernel names it.
fn of_size(name: &str) -> Option<Definition> {
    let (size, statistic) = name.strip_prefix("mthp_")?.split_once("kB_")?;
    let kilobytes: u64 = size.parse().ok()?;
    let kind = match statistic.starts_with("nr_") {
        true => Level,
        false => Change,
    };
    let threads = ROWS.iter().position(|row| row.4 == Threads)?;
    Some(Definition {
        title: format!("{kilobytes} KiB pages: {}", statistic.replace('_', " ")),
        unit: Count,
        kind,
        group: Group::Sizes,
        part_of: None,
        // After the other counters of huge pages, the smallest size first.
        place: (threads - 1, format!("{kilobytes:012} {statistic}")),
    })
}
