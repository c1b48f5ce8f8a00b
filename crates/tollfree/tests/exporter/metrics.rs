// SPDX-License-Identifier: MIT OR Apache-2.0
//! The metrics of this machine, and of fixture machines.

use std::fs;
use std::process::{Command, Stdio};

use toll_testkit::Directory;

use crate::Exporter;

const WEB: &str = "sys/fs/cgroup/web.slice/a\"b\u{1b}";

/// A machine with a server in a cgroup with a hostile name.
struct Machine(Directory);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(Directory::with(&[
            (
                "proc/self/mountinfo",
                "33 30 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            (
                "proc/stat",
                "cpu  10 5 20 900 1 2 3 0 0 0\ncpu0 5 0 0 0 0 0 0 0 0 0\n",
            ),
            ("proc/100/cgroup", "0::/web.slice/a\"b\u{1b}\n"),
            (&format!("{WEB}/cgroup.procs"), ""),
            (
                "sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/nr_anon",
                "4\n",
            ),
            (
                "sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/anon_fault_alloc",
                "9\n",
            ),
        ]));
        machine.faults(1_000);
        machine
    }

    fn write(&self, name: &str, text: &str) {
        self.0.replace(name, text);
    }

    /// Faults of everything since boot.
    fn faults(&self, number: u64) {
        let counted = format!("pgfault {number}\npgmajfault 10\n");
        self.write("proc/vmstat", &counted);
        self.write(&format!("{WEB}/memory.stat"), &counted);
        let stat = format!(
            "100 (ser\"v\\e\nr) S 1 1 1 0 -1 0 {number} 0 2 0 3 {number} 0 0 20 0 1 0 77 0 512 0\n"
        );
        self.write("proc/100/stat", &stat);
    }

    fn exporter(&self, more: &[&str]) -> Exporter {
        let root = self.0.as_path().to_str().unwrap();
        Exporter::start(&self.0, &[&["--root", root], more].concat())
    }
}

#[test]
fn counters_are_the_kernels_and_losses_grow() {
    let machine = Machine::new();
    let exporter = machine.exporter(&[]);
    let first = exporter.metrics();
    let faults = |metrics: &crate::strict::Metrics| {
        metrics.value("tollfree_machine_page_faults_total", None)
    };
    assert_eq!(faults(&first), Some(1_000.0));
    assert_eq!(
        first.value("tollfree_machine_cpu_user_seconds_total", None),
        Some(0.15)
    );
    assert_eq!(
        first.value("tollfree_machine_mthp_nr_anon", Some(("size", "64kB"))),
        Some(4.0)
    );
    machine.faults(5_000);
    // A look is at most one a second.
    let later = std::iter::repeat_with(|| exporter.metrics());
    let later = later
        .into_iter()
        .find(|it| faults(it) == Some(5_000.0))
        .unwrap();
    let cgroup = Some(("cgroup", "/web.slice/a\"b\\u{1b}"));
    assert_eq!(
        later.value("tollfree_cgroup_page_faults_total", cgroup),
        Some(5_000.0)
    );
    for (name, label) in [
        (
            "tollfree_machine_lost_cpu_seconds_total",
            Some(("cause", "page_faults_minor")),
        ),
        ("tollfree_cgroup_lost_cpu_seconds_total", cgroup),
        (
            "tollfree_process_lost_cpu_seconds_total",
            Some(("command", "ser\"v\\e\\u{a}r")),
        ),
    ] {
        assert!(later.value(name, label) > Some(0.0), "{name}");
        let bound = |bound: &str| later.value(&name.replace("cpu", &format!("cpu_{bound}")), label);
        assert!(bound("low") <= later.value(name, label), "{name}");
        assert!(bound("high") >= later.value(name, label), "{name}");
    }
    assert!(later.value("tollfree_missing", Some(("counter", "tlb_shootdowns_sent"))) > Some(0.0));
}

#[test]
fn the_number_of_processes_is_limited() {
    let machine = Machine::new();
    let exporter = machine.exporter(&["--processes", "0"]);
    machine.faults(9_000);
    let metrics = std::iter::repeat_with(|| exporter.metrics())
        .find(|it| it.value("tollfree_machine_page_faults_total", None) == Some(9_000.0))
        .unwrap();
    assert!(metrics.labels("pid").is_empty());
}

/// A process ends, and its cgroup is removed.
#[test]
fn what_is_gone_has_no_metrics() {
    let machine = Machine::new();
    let exporter = machine.exporter(&[]);
    assert_eq!(exporter.metrics().labels("cgroup").len(), 1);
    fs::remove_dir_all(machine.0.path("proc/100")).unwrap();
    fs::remove_dir_all(machine.0.path("sys/fs/cgroup")).unwrap();
    while !exporter.metrics().labels("cgroup").is_empty() {}
}

#[test]
fn a_machine_with_nothing_has_reasons() {
    let empty = Directory::empty();
    let root = empty.as_path().to_str().unwrap().to_owned();
    let metrics = Exporter::start(&empty, &["--root", &root]).metrics();
    assert!(metrics.value("tollfree_missing", Some(("counter", "page_faults"))) == Some(1.0));
    assert!(metrics.value("tollfree_missing", Some(("counter", "processes"))) == Some(1.0));
    assert_eq!(
        metrics.value("tollfree_machine_page_faults_total", None),
        None
    );
}

/// This machine, with a program that faults. Counters never fall.
#[test]
fn counters_of_this_machine_only_grow() {
    let touch = "import mmap\nwhile True:\n  m = mmap.mmap(-1, 1 << 22)\n  for at in range(0, 1 << 22, 4096): m[at] = 1\n  m.close()\n";
    let mut load = Command::new("python3");
    let mut load = load
        .args(["-c", touch])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let exporter = Exporter::start(&Directory::empty(), &[]);
    let pid = load.id().to_string();
    let first = exporter.metrics();
    let lost = |it: &crate::strict::Metrics| {
        it.value(
            "tollfree_process_lost_cpu_seconds_total",
            Some(("pid", &pid)),
        )
    };
    let later = std::iter::repeat_with(|| exporter.metrics())
        .find(|it| lost(it) > Some(0.0))
        .unwrap();
    load.kill().unwrap();
    load.wait().unwrap();
    for ((name, labels), value) in &first.samples {
        if name.ends_with("_total") && labels.iter().all(|it| it.0 != "cgroup") {
            let now = later.samples.get(&(name.clone(), labels.clone()));
            assert!(
                now.is_none_or(|now| now >= value),
                "{name} {labels:?}: {value} {now:?}"
            );
        }
    }
}
