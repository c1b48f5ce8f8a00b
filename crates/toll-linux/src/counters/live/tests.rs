// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything at once, on fixture machines.

use std::fs;

use toll_model::losses::{self, Scope};
use toll_testkit::Directory;

use super::*;
use crate::counters::Unread;

const KERNEL: u64 = 0x0020_0000;

struct Machine(Directory);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(Directory::with(&[
            (
                "proc/vmstat",
                "pgfault 1000\npgmajfault 10\nthp_fault_alloc 7\n",
            ),
            (
                "proc/stat",
                "cpu  10 5 20 900 1 2 3 0 0 0\ncpu0 5 0 0 0 0 0 0 0 0 0\n",
            ),
            (
                "proc/self/mountinfo",
                "33 30 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
        ]));
        machine.process(2, "kthreadd", KERNEL, [0; 4], "");
        machine.process(40, "kswapd0", KERNEL, [0, 0, 0, 3], "");
        machine.process(100, "server) S 1", 0, [50, 2, 10, 20], "0::/a.slice/x\n");
        machine.process(101, "idle", 0, [5, 0, 0, 0], "0::/none\n");
        machine.group(500);
        machine
    }

    /// A process with minor and major faults, user and system ticks.
    fn process(&self, pid: u32, name: &str, flags: u64, used: [u64; 4], cgroup: &str) {
        let [minor, major, user, system] = used;
        let stat = format!(
            "{pid} ({name}) S 1 1 1 0 -1 {flags} {minor} 0 {major} 0 {user} {system} 0 0 20 0 1 0 77 0 512 0\n"
        );
        self.0.write(format!("proc/{pid}/stat"), stat);
        self.0.write(format!("proc/{pid}/cgroup"), cgroup);
        self.0.write(
            format!("proc/{pid}/status"),
            format!("Name:\tx\nState:\tS\nTgid:\t{pid}\nVmRSS:\t2048 kB\n"),
        );
        let rollup = "Rss: 2048 kB\nAnonHugePages: 2048 kB\n";
        self.0.write(format!("proc/{pid}/smaps_rollup"), rollup);
    }

    fn group(&self, faults: u64) {
        let group = "sys/fs/cgroup/a.slice/x";
        self.0.write(format!("{group}/cgroup.procs"), "");
        let stat = format!("pgfault {faults}\npgmajfault 1\nanon_thp 0\n");
        self.0.write(format!("{group}/memory.stat"), stat);
    }

    fn live(&self) -> Live {
        Live::new(&Root::at(self.0.as_path()))
    }
}

#[test]
fn processes_and_threads_for_memory_are_shown() {
    let machine = Machine::new();
    let look = machine.live().look();
    let shown: Vec<u32> = look.processes.keys().copied().collect();
    assert_eq!(shown, [40, 100, 101], "kthreadd does nothing for memory");
    let server = &look.processes[&100];
    assert_eq!(&*server.name, "server) S 1");
    assert_eq!(server.cgroup.as_deref(), Some("/a.slice/x"));
    assert_eq!((server.faults(), server.major_faults()), (52, 2));
    assert_eq!(server.cpu_ns(), 300_000_000);
    assert!(!server.is_exact(), "a fixture has no clocks");
    assert_eq!(server.resident, 2 << 20);
    assert_eq!(server.huge(), Ok(2 << 20));
    assert_eq!(look.processes[&40].huge(), Err(Unread::NotYet));
    assert_eq!(look.hidden, None);
}

#[test]
fn only_groups_with_counters_have_them() {
    let machine = Machine::new();
    let mut live = machine.live();
    let first = live.look();
    let paths: Vec<&str> = first.groups.keys().map(|path| &**path).collect();
    assert_eq!(paths, ["/a.slice/x"]);
    machine.group(700);
    let faults = |look: &Look| look.groups["/a.slice/x"].value(Scope::Cgroup, "page_faults");
    assert_eq!(faults(&live.look()), Some(700));
    machine.process(100, "moved", 0, [50, 2, 10, 20], "0::/none\n");
    for _ in 0..40 {
        live.look();
    }
    assert!(live.look().groups.is_empty(), "its process has moved");
}

/// The counters of a process have the estimates that `stat` has.
#[test]
fn a_process_has_a_loss() {
    let machine = Machine::new();
    let mut live = machine.live();
    let before = live.look();
    machine.process(100, "server", 0, [1_050, 2, 10, 30], "");
    machine.process(40, "kswapd0", KERNEL, [0, 0, 0, 8], "");
    let after = live.look();
    let costs = losses::EventCosts::of(&crate::calibrate::default_costs());
    let lost = |pid: u32| {
        let of = |look: &Look| look.processes[&pid].snapshot(&look.machine);
        let counters = losses::counters(&of(&before), &of(&after), &costs);
        losses::total(&counters, Scope::Tree).unwrap().ns
    };
    assert_eq!(lost(100), 1_000.0 * costs.fault_4k.median);
    assert_eq!(lost(40), 50_000_000.0, "all of its CPU time");
    assert_eq!(lost(101), 0.0);
}

/// Walking the page tables of 100 GiB would take seconds; small processes are read all the same.
#[test]
fn memory_is_read_within_the_budget() {
    let machine = Machine::new();
    machine.process(103, "large", 0, [1, 0, 0, 0], "0::/\n");
    let path = "proc/103/stat";
    let pages = (100u64 << 30) / 4096;
    let stat = machine.0.read(path).replace(" 512 ", &format!(" {pages} "));
    machine.0.write(path, stat);
    let look = machine.live().look();
    let large = &look.processes[&103];
    assert_eq!(
        (large.resident, large.huge()),
        (100 << 30, Err(Unread::NotYet))
    );
    assert_eq!(look.processes[&101].huge(), Ok(2 << 20));
}

/// Where there are no hugetlb pages, less than 2 MiB of memory has no huge page.
#[test]
fn small_processes_are_not_read() {
    let machine = Machine::new();
    let path = "proc/101/stat";
    let stat = machine.0.read(path).replace(" 512 ", " 511 ");
    machine.0.write(path, stat);
    let huge = |machine: &Machine| machine.live().look().processes[&101].huge();
    assert_eq!(huge(&machine), Ok(2 << 20), "it may have hugetlb pages");
    machine.0.write("proc/meminfo", "Hugetlb: 0 kB\n");
    assert_eq!(huge(&machine), Ok(0));
}

#[test]
fn processes_come_and_go() {
    let machine = Machine::new();
    let mut live = machine.live();
    live.look();
    fs::remove_dir_all(machine.0.path("proc/101")).unwrap();
    machine.process(102, "new", 0, [1, 0, 0, 0], "0::/\n");
    let look = live.look();
    assert!(!look.processes.contains_key(&101));
    assert_eq!(look.processes[&102].faults(), 1);
    // Its files vanish one by one.
    for gone in ["smaps_rollup", "status", "cgroup", "stat"] {
        fs::remove_file(machine.0.path(format!("proc/102/{gone}"))).unwrap();
        live.look();
    }
    assert!(!live.look().processes.contains_key(&102));
}

#[test]
fn hidden_processes_are_explained() {
    let machine = Machine::new();
    for pid in [2, 40] {
        fs::remove_dir_all(machine.0.path(format!("proc/{pid}"))).unwrap();
    }
    let reason = |machine: &Machine| machine.live().look().hidden.unwrap().reason;
    assert!(reason(&machine).contains("container"));
    machine.0.write(
        "proc/self/mountinfo",
        "24 23 0:22 / /proc rw,relatime - proc proc rw,hidepid=invisible\n",
    );
    assert!(reason(&machine).contains("hidepid"));
}

/// The clock of a process tells whether it ran; this test's own process does.
#[test]
fn this_machine_is_seen() {
    let mut live = Live::new(&Root::system());
    let pid = std::process::id();
    let first = live.look();
    let second = live.look();
    let [first, second] = [&first, &second].map(|look| &look.processes[&pid]);
    assert!(first.is(second));
    assert!(second.cpu_ns() > first.cpu_ns());
    assert!(second.faults() >= first.faults() && first.faults() > 0);
}
