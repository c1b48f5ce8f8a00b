// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers on fixture machines.

mod groups;

use std::fs;

use toll_testkit::Directory;

use super::*;

/// A line of /proc/PID/stat: name, state, flags, then minor, children's minor, major, children's
/// major faults, user, system, children's user and system ticks, and the start time.
fn stat(pid: u32, name: &str, state: char, flags: u64, numbers: [u64; 8], started: u64) -> String {
    let numbers = numbers.map(|number| number.to_string()).join(" ");
    let zeros = "0 ".repeat(30);
    format!("{pid} ({name}) {state} 1 1 1 0 -1 {flags} {numbers} 20 0 1 0 {started} {zeros}\n")
}

const KERNEL: u64 = 0x0020_0000;

fn machine() -> Directory {
    let machine = Directory::with(&[
        (
            "proc/vmstat",
            "pgfault 1000\npgmajfault 10\npswpin 3\nallocstall_dma 1\nallocstall_normal 4\n\
             pgscan_direct 70\npgscan_direct_throttle 9\npgsteal_direct 60\ncompact_stall 7\n\
             thp_fault_alloc 20\nthp_split_page 2\nnr_tlb_remote_flush 11\n",
        ),
        (
            "proc/interrupts",
            "           CPU0       CPU2\nLOC:  5 6  Local timer interrupts\n\
             TLB:         30         12   TLB shootdowns\n",
        ),
        (
            "proc/stat",
            "cpu  10 5 20 900 1 2 3 0 0 0\ncpu0 5 0 0 0 0 0 0 0 0 0\ncpu2 5 0 0 0 0 0 0 0 0 0\n\
             intr 1 2 3\nctxt 4321\n",
        ),
        (
            "proc/meminfo",
            "MemTotal: 100 kB\nAnonHugePages:  4096 kB\nShmemPmdMapped: 2048 kB\n\
             FilePmdMapped: 0 kB\nHugetlb: 6144 kB\nPageTables: 12 kB\n",
        ),
        (
            "proc/pressure/memory",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n\
             full avg10=0.00 avg60=0.00 avg300=0.00 total=2\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/anon_fault_alloc",
            "17\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/nr_anon",
            "4\n",
        ),
    ]);
    for (pid, name, ticks) in [
        (38, "khugepaged", 3),
        (45, "kswapd0", 2),
        (46, "kswapd1", 5),
    ] {
        let line = stat(pid, name, 'S', KERNEL, [0, 0, 0, 0, 0, ticks, 0, 0], 1);
        machine.write(format!("proc/{pid}/stat"), line);
    }
    // A program may call itself like a kernel thread.
    let line = stat(50, "kswapd9) S (", 'S', 0, [0, 0, 0, 0, 0, 900, 0, 0], 1);
    machine.write("proc/50/stat", line);
    machine
}

fn missing(snapshot: &Snapshot, scope: Scope, name: &str) -> Missing {
    let found = toll_model::losses::counters(
        snapshot,
        snapshot,
        &toll_model::losses::EventCosts::of(&crate::calibrate::default_costs()),
    );
    let counter = found
        .into_iter()
        .find(|it| it.scope == scope && it.name == name);
    counter
        .unwrap_or_else(|| panic!("no {name}"))
        .missing
        .unwrap()
}

/// A container's runtime puts an empty file over it.
#[test]
fn hidden_interrupts_are_told_from_a_cpu_without_shootdowns() {
    let machine = machine();
    let reason = |text: &str| {
        machine.write("proc/interrupts", text);
        let snapshot = Counters::of_machine(&Root::at(machine.as_path())).read();
        missing(&snapshot, Scope::Machine, "tlb_shootdowns_received")
    };
    let hidden = reason("");
    assert!(hidden.reason.contains("hidden"), "{hidden:?}");
    assert!(hidden.fix.unwrap().contains("systempaths=unconfined"));
    let none = reason("           CPU0\nLOC:  5  Local timer interrupts\n");
    assert!(none.reason.contains("no line TLB"), "{none:?}");
    assert_eq!(none.fix, None);
}

#[test]
fn the_machine_is_read_from_its_files() {
    let machine = machine();
    let snapshot = Counters::of_machine(&Root::at(machine.as_path())).read();
    let value = |name| snapshot.value(Scope::Machine, name);
    for (name, expected) in [
        ("page_faults", 1000),
        ("page_faults_minor", 990),
        ("page_faults_major", 10),
        ("swap_ins", 3),
        ("direct_reclaims", 5),
        ("direct_scanned_pages", 70),
        ("direct_reclaimed_pages", 60),
        ("direct_compactions", 7),
        ("thp_fault_alloc", 20),
        ("thp_splits", 2),
        ("tlb_shootdowns_received", 42),
        ("tlb_shootdowns_sent", 11),
        ("cpu_user", 150_000_000),
        ("cpu_system", 250_000_000),
        ("context_switches", 4321),
        ("pressure_some", 5_000),
        ("pressure_full", 2_000),
        ("cpu_khugepaged", 30_000_000),
        ("cpu_kcompactd", 0),
        ("cpu_kswapd", 70_000_000),
        ("mapped_huge_anon", 4 << 20),
        ("mapped_huge_shmem", 2 << 20),
        ("mapped_hugetlb", 6 << 20),
        ("page_tables", 12 << 10),
        ("mthp_64kB_anon_fault_alloc", 17),
        ("mthp_64kB_nr_anon", 4),
    ] {
        assert_eq!(value(name), Some(expected), "{name}");
    }
    assert_eq!(snapshot.cpus, 2);
    let later = toll_model::losses::counters(
        &Snapshot::default(),
        &snapshot,
        &toll_model::losses::EventCosts::of(&crate::calibrate::default_costs()),
    );
    let shootdowns = later.iter().find(|it| it.name == "tlb_shootdowns_received");
    assert_eq!(
        shootdowns.unwrap().by_cpu,
        [30, 0, 12],
        "by the CPU's number"
    );
}

/// With every file gone, one after the other, the rest is read, and what is missing has a reason.
#[test]
fn a_poor_machine_says_what_is_missing() {
    let machine = machine();
    for (file, name) in [
        ("proc/pressure/memory", "pressure_some"),
        ("proc/interrupts", "tlb_shootdowns_received"),
        ("proc/stat", "context_switches"),
        ("proc/meminfo", "page_tables"),
        ("proc/vmstat", "page_faults_minor"),
    ] {
        fs::remove_file(machine.path(file)).unwrap();
        let snapshot = Counters::of_machine(&Root::at(machine.as_path())).read();
        assert_eq!(snapshot.value(Scope::Machine, name), None, "{file}");
        let missing = missing(&snapshot, Scope::Machine, name);
        assert!(missing.fix.is_some(), "{missing:?}");
        assert_eq!(
            snapshot.value(Scope::Machine, "cpu_kswapd"),
            Some(70_000_000)
        );
    }
    for directory in ["proc", "sys"] {
        fs::remove_dir_all(machine.path(directory)).unwrap();
    }
    let snapshot = Counters::of_machine(&Root::at(machine.as_path())).read();
    let missing = |name| missing(&snapshot, Scope::Machine, name);
    assert!(missing("cpu_kswapd").fix.unwrap().contains("--pid host"));
    assert!(missing("mthp").fix.unwrap().contains("6.10"));
    assert!(missing("cycles").fix.unwrap().contains("PMU"));
}

#[test]
fn a_kernel_without_a_part_names_its_option() {
    let machine = machine();
    machine.write("proc/vmstat", "pgfault 5\npgmajfault 1\n");
    machine.write("proc/interrupts", "  CPU0\nLOC: 4 x\n");
    let snapshot = Counters::of_machine(&Root::at(machine.as_path())).read();
    for (name, fix) in [
        ("tlb_shootdowns_sent", "CONFIG_DEBUG_TLBFLUSH"),
        ("direct_compactions", "CONFIG_COMPACTION"),
        ("thp_splits", "CONFIG_TRANSPARENT_HUGEPAGE"),
        ("swap_ins", "CONFIG_SWAP"),
    ] {
        assert!(
            missing(&snapshot, Scope::Machine, name)
                .fix
                .unwrap()
                .contains(fix),
            "{name}"
        );
    }
    let no_line = missing(&snapshot, Scope::Machine, "tlb_shootdowns_received");
    assert_eq!(no_line.fix, None, "{no_line:?}");
}

#[test]
fn kernel_threads_that_come_and_go_are_followed() {
    let machine = machine();
    let mut counters = Counters::of_machine(&Root::at(machine.as_path()));
    counters.read();
    fs::remove_dir_all(machine.path("proc/38")).unwrap();
    assert_eq!(
        counters.read().value(Scope::Machine, "cpu_khugepaged"),
        Some(0)
    );
    let line = stat(60, "khugepaged", 'S', KERNEL, [0, 0, 0, 0, 1, 1, 0, 0], 9);
    machine.write("proc/60/stat", line);
    counters.read();
    assert_eq!(
        counters.read().value(Scope::Machine, "cpu_khugepaged"),
        Some(20_000_000)
    );
}

/// A process with a child: the sum has both, and survives the child's end however it ends.
struct Family(Directory);

impl Family {
    fn new() -> Family {
        let family = Family(machine());
        family.process(100, [10, 5, 1, 0, 2, 3, 0, 0], 77, "101");
        family.process(101, [20, 0, 2, 0, 4, 5, 0, 0], 88, "");
        family.0.write(
            "proc/100/smaps_rollup",
            "1-2 r--p 0 0:0 0 [rollup]\nRss: 8 kB\n",
        );
        family.0.write(
            "proc/101/smaps_rollup",
            "400000-7fff r--p 0 0:0 0 [rollup]\nRss: 9000 kB\nAnonHugePages: 4096 kB\n\
             Shared_Hugetlb: 2048 kB\nPrivate_Hugetlb: 2048 kB\n",
        );
        family
    }

    fn process(&self, pid: u32, numbers: [u64; 8], started: u64, children: &str) {
        self.0.write(
            format!("proc/{pid}/stat"),
            stat(pid, "a b) R", 'R', 0, numbers, started),
        );
        let status = format!("Name:\tx\nState:\tR\nTgid:\t{pid}\nVmRSS:\t8 kB\nVmPTE:\t12 kB\n");
        self.0.write(format!("proc/{pid}/status"), status);
        self.0
            .write(format!("proc/{pid}/task/{pid}/children"), children);
    }

    fn watch(&self) -> Counters {
        Counters::of_process(&Root::at(self.0.as_path()), 100).unwrap()
    }
}

fn faults(snapshot: &Snapshot) -> (u64, u64) {
    let value = |name| snapshot.value(Scope::Tree, name).unwrap();
    (value("page_faults_minor"), value("page_faults_major"))
}

#[test]
fn a_tree_is_the_sum_of_its_processes() {
    let family = Family::new();
    let mut counters = family.watch();
    let snapshot = counters.read();
    assert_eq!(faults(&snapshot), (35, 3));
    let value = |name| snapshot.value(Scope::Tree, name);
    assert_eq!(value("cpu_user"), Some(60_000_000));
    assert_eq!(value("cpu_system"), Some(80_000_000));
    assert_eq!(value("mapped_huge_anon"), Some(4 << 20));
    assert_eq!(value("mapped_hugetlb"), Some(4 << 20));
    assert_eq!(value("page_tables"), Some(24 << 10));
    assert!(!counters.is_over());
}

#[test]
fn a_child_that_was_waited_for_is_counted_once() {
    let family = Family::new();
    let mut counters = family.watch();
    counters.read();
    fs::remove_dir_all(family.0.path("proc/101")).unwrap();
    // Its last faults and those that it had at the last look are now the parent's.
    family.process(100, [11, 5 + 25, 1, 2, 2, 3, 4, 5], 77, "");
    assert_eq!(faults(&counters.read()), (41, 3));
}

#[test]
fn a_child_that_nobody_waits_for_is_not_lost() {
    let family = Family::new();
    let mut counters = family.watch();
    counters.read();
    fs::remove_dir_all(family.0.path("proc/101")).unwrap();
    family.process(100, [11, 5, 1, 0, 2, 3, 0, 0], 77, "");
    assert_eq!(faults(&counters.read()), (36, 3));
    assert_eq!(faults(&counters.read()), (36, 3), "and counted once");
}

#[test]
fn a_child_of_another_parent_stays_in_the_tree() {
    let family = Family::new();
    let mut counters = family.watch();
    counters.read();
    family.process(100, [10, 5, 1, 0, 2, 3, 0, 0], 77, "");
    family.process(101, [26, 0, 2, 0, 4, 5, 0, 0], 88, "");
    assert_eq!(faults(&counters.read()), (41, 3));
    // Another process takes over the id.
    family.process(101, [9_000, 0, 2, 0, 4, 5, 0, 0], 99, "");
    assert_eq!(faults(&counters.read()), (41, 3));
}

#[test]
fn a_process_that_ends_or_is_replaced_is_over() {
    let family = Family::new();
    let counters = family.watch();
    family.process(100, [1, 0, 0, 0, 0, 0, 0, 0], 78, "");
    assert!(counters.is_over(), "another one with its id");
    let zombie = stat(100, "x", 'Z', 0, [0; 8], 77);
    family.0.write("proc/100/stat", zombie);
    assert!(counters.is_over());
    fs::remove_dir_all(family.0.path("proc/100")).unwrap();
    assert!(counters.is_over());
}

#[test]
fn a_kernel_without_rollups_says_so() {
    let family = Family::new();
    fs::remove_file(family.0.path("proc/101/smaps_rollup")).unwrap();
    let missing = missing(&family.watch().read(), Scope::Tree, "mapped_huge_anon");
    assert!(missing.fix.unwrap().contains("CONFIG_PROC_PAGE_MONITOR"));
}

/// The kernel's totals at the end replace those of the last look, which was before.
#[test]
fn the_totals_at_the_end_count() {
    let family = Family::new();
    let mut counters = Counters::of_children(&Root::at(family.0.as_path()));
    assert_eq!(faults(&counters.read()), (0, 0));
    counters.attach(100);
    counters.look();
    for pid in [100, 101] {
        fs::remove_dir_all(family.0.path(format!("proc/{pid}"))).unwrap();
    }
    counters.end(FinalUse {
        minor_faults: 50,
        major_faults: 2,
        user: Duration::from_micros(70_500),
        system: Duration::ZERO,
    });
    let snapshot = counters.read();
    assert_eq!(faults(&snapshot), (50, 3), "a daemon's fault is kept");
    assert_eq!(snapshot.value(Scope::Tree, "cpu_user"), Some(70_500_000));
    assert_eq!(
        snapshot.value(Scope::Tree, "mapped_huge_anon"),
        Some(4 << 20),
        "as last seen"
    );
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let family = Family::new();
    let root = Root::at(family.0.as_path());
    let refusal = |pid| Counters::of_process(&root, pid).unwrap_err().to_string();
    assert_eq!(refusal(4000), "process 4000: not found");
    assert!(refusal(38).starts_with("process 38 is a kernel thread"));
    family.process(102, [0; 8], 5, "");
    family
        .0
        .write("proc/102/status", "Name:\tx\nState:\tS\nTgid:\t100\n");
    assert_eq!(refusal(102), "102 is a thread of process 100");
    family
        .0
        .write("proc/103/stat", stat(103, "x", 'Z', 0, [0; 8], 5));
    assert_eq!(refusal(103), "process 103 has ended");
}
