// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree doctor` on fixture machines and on this one.

use std::fs;
use std::ops::Deref;
use std::process::Command;

use serde_json::Value;
use toll_testkit::output::succeeds;
use toll_testkit::{Directory, schema};

/// A fully equipped machine; the tests remove parts of it.
const MACHINE: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.12.48-amd64\n"),
    (
        "proc/cpuinfo",
        "cpu family : 6\nmodel : 85\nmodel name : Some CPU\n",
    ),
    (
        "proc/meminfo",
        "MemTotal: 33554432 kB\nMemFree: 16777216 kB\nMemAvailable: 25165824 kB\n",
    ),
    (
        "proc/buddyinfo",
        "Node 0, zone Normal 0 0 0 0 0 0 0 0 0 0 4000\n",
    ),
    ("proc/self/cgroup", "0::/\n"),
    (
        "proc/1/status",
        "Name:\tx\nState:\tR\nTgid:\t1\nVmRSS:\t4 kB\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n",
    ),
    ("proc/1/clear_refs", ""),
    ("sys/kernel/btf/vmlinux", ""),
    ("proc/filesystems", "nodev\tsysfs\n\text4\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/defrag",
        "always [madvise] never\n",
    ),
    (
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "4\n",
    ),
    (
        "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages",
        "4\n",
    ),
    ("usr/bin/qemu-x86_64", ""),
];

struct Machine(Directory);

impl Machine {
    fn new() -> Machine {
        Machine(Directory::with(MACHINE))
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    fn report(&self) -> Value {
        doctor(self.as_machine(&["doctor", "--json"]))
    }

    /// (state, detail) of a check.
    fn check(&self, name: &str) -> (String, String) {
        find(&self.report(), name)
    }
}

impl Deref for Machine {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
    }
}

fn doctor(mut command: Command) -> Value {
    let output = command.output().unwrap();
    succeeds(&output);
    schema::json("doctor", &output)
}

fn find(report: &Value, name: &str) -> (String, String) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    let text = |key: &str| check[key].as_str().unwrap().to_owned();
    (text("state"), text("detail"))
}

/// PostgreSQL's buffers and tmpfs have a separate setting.
#[test]
fn the_setting_of_shared_memory_is_said() {
    let machine = Machine::new();
    let (_, detail) = machine.check("transparent huge pages");
    assert!(!detail.contains("shared memory"), "{detail}");
    machine.write(
        "sys/kernel/mm/transparent_hugepage/shmem_enabled",
        "always within_size advise [never] deny force\n",
    );
    let (_, detail) = machine.check("transparent huge pages");
    assert!(detail.contains("shared memory: never"), "{detail}");
}

#[test]
fn a_good_machine_is_told_so() {
    let report = Machine::new().report();
    let not_ok: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["state"] != "ok")
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    // No fixture has a PMU, and a stock kernel has neither DAMON nor the patches enabled.
    assert_eq!(
        not_ok,
        ["tollfree kernel", "PMU (perf mem)", "DAMON", "cost table"]
    );
}

#[test]
fn a_patched_kernel_is_known_by_its_parts() {
    let machine = Machine::new();
    machine.write(
        "proc/filesystems",
        "nodev\tsysfs\nnodev\tmorselfs\n\text4\n",
    );
    let (state, detail) = machine.check("tollfree kernel");
    assert_eq!((state.as_str(), detail.as_str()), ("partial", "morselfs"));
}

#[test]
fn thp_never_still_allows_collapsing() {
    let machine = Machine::new();
    machine.write(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always madvise [never]\n",
    );
    let (state, detail) = machine.check("transparent huge pages");
    assert_eq!(state, "partial");
    assert!(detail.starts_with("never"), "{detail}");
    assert_eq!(machine.check("MADV_COLLAPSE").0, "ok");
    machine.remove("sys/kernel/mm/transparent_hugepage/enabled");
    assert_eq!(machine.check("transparent huge pages").0, "missing");
    assert_eq!(machine.check("MADV_COLLAPSE").0, "missing");
}

#[test]
fn a_container_without_ptrace_and_process_madvise() {
    let machine = Machine::new();
    machine.write(
        "proc/1/status",
        "Name:\tx\nState:\tR\nTgid:\t1\nVmRSS:\t4 kB\nCapEff:\t00000000a80425fb\n",
    );
    machine.write("proc/sys/kernel/yama/ptrace_scope", "2\n");
    assert_eq!(machine.check("ptrace").0, "missing");
    assert_eq!(machine.check("process_madvise").0, "missing");
    machine.write("proc/sys/kernel/yama/ptrace_scope", "1\n");
    assert_eq!(machine.check("ptrace").0, "partial");
}

#[test]
fn a_control_group_limit_counts_as_the_memory() {
    let machine = Machine::new();
    machine.write("proc/self/cgroup", "0::/pod\n");
    machine.write("sys/fs/cgroup/pod/memory.max", "1073741824\n");
    let (state, detail) = machine.check("container limits");
    assert_eq!(state, "partial");
    assert!(detail.contains("1 GiB"), "{detail}");
}

#[test]
fn a_machine_of_2_gib() {
    let machine = Machine::new();
    machine.write(
        "proc/meminfo",
        "MemTotal: 2097152 kB\nMemFree: 524288 kB\nMemAvailable: 1048576 kB\n",
    );
    assert_eq!(machine.check("memory").0, "partial");
}

#[test]
fn fragmented_memory_and_free_page_reporting_are_named() {
    let machine = Machine::new();
    machine.write(
        "proc/buddyinfo",
        "Node 0, zone Normal 9999 9999 0 0 0 0 0 0 0 3 0\n",
    );
    let (state, detail) = machine.check("free 2 MiB blocks");
    assert_eq!(state, "partial");
    assert!(detail.starts_with("3 (6 MiB"), "{detail}");
    machine.write("sys/bus/virtio/devices/virtio3/device", "0x0005\n");
    machine.write("sys/bus/virtio/devices/virtio3/features", "00100100\n");
    assert_eq!(machine.check("free-page reporting").0, "partial");
}

#[test]
fn an_old_kernel_and_no_simulator() {
    let machine = Machine::new();
    machine.write("proc/sys/kernel/osrelease", "5.4.0-150-generic\n");
    machine.remove("usr/bin/qemu-x86_64");
    assert_eq!(machine.check("kernel").0, "partial");
    assert_eq!(machine.check("MADV_COLLAPSE").0, "missing");
    assert_eq!(machine.check("process_madvise").0, "missing");
    assert_eq!(machine.check("simulator").0, "missing");
    // The remedy is the distribution's.
    machine.write("etc/os-release", "ID=arch\nNAME=\"Arch Linux\"\n");
    let report = machine.report();
    let checks = report["checks"].as_array().unwrap();
    let simulator = checks.iter().find(|it| it["name"] == "simulator").unwrap();
    let fix = simulator["fix"].as_str().unwrap();
    assert!(
        fix.starts_with("on Arch Linux: `pacman -S qemu-user`"),
        "{fix}"
    );
}

#[test]
fn an_event_that_samples_accesses_is_found_before_it_is_tried() {
    let machine = Machine::new();
    let pmu = "sys/bus/event_source/devices/cpu";
    machine.write(format!("{pmu}/type"), "4\n");
    assert!(machine.check("PMU (perf mem)").1.contains("no event"));
    machine.write(
        format!("{pmu}/events/mem-loads"),
        "event=0xcd,umask=0x1,ldlat=3\n",
    );
    machine.write(format!("{pmu}/format/event"), "config:0-7\n");
    machine.write(format!("{pmu}/format/umask"), "config:8-15\n");
    machine.write(format!("{pmu}/format/ldlat"), "config1:0-15\n");
    let (state, detail) = machine.check("PMU (perf mem)");
    assert_eq!(state, "missing", "a fixture cannot be probed");
    assert!(detail.starts_with("cpu/mem-loads/P"), "{detail}");
}

#[test]
fn an_empty_directory_is_a_machine_with_nothing() {
    let report = Machine(Directory::empty()).report();
    assert_eq!(find(&report, "kernel").0, "missing");
    assert_eq!(find(&report, "memory").0, "missing");
}

#[test]
fn this_machine_is_probed_and_shown_to_people() {
    let directory = Directory::empty();
    let report = doctor(directory.tollfree(&["doctor", "--json"]));
    assert_eq!(find(&report, "clear_refs").0, "ok");
    let text = succeeds(&directory.run(&["doctor"]));
    let header: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["what", "state", "found"]);
    for check in report["checks"].as_array().unwrap() {
        assert!(text.contains(check["name"].as_str().unwrap()), "{text}");
    }
}

/// An image may contain tollfree alone.
#[test]
fn the_probes_run_no_other_program() {
    let directory = Directory::empty();
    let report = doctor(directory.tollfree(&["doctor", "--json"]));
    let mut alone = directory.tollfree(&["doctor", "--json"]);
    alone.env("PATH", "/nonexistent");
    let alone = doctor(alone);
    for name in ["ptrace", "process_madvise"] {
        assert_eq!(find(&alone, name), find(&report, name));
    }
}

#[test]
fn a_root_that_is_not_there_is_wrong_usage() {
    let output = Directory::empty().run(&["doctor", "--root", "/nonexistent"]);
    assert_eq!(output.status.code(), Some(2));
}
