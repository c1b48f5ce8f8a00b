// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups of both versions.

use super::*;

const V2: &str = "sys/fs/cgroup/unified/a b/web";
const V1: &str = "sys/fs/cgroup/memory/web";

fn groups() -> Directory {
    let machine = machine();
    machine.write(
        "proc/self/mountinfo",
        "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
    );
    for (file, text) in [
        ("cgroup.procs", ""),
        (
            "memory.stat",
            "anon 5\npgfault 100\npgmajfault 4\nthp_fault_alloc 6\npgsteal_direct 3\n\
             anon_thp 4194304\nshmem_thp 0\nfile_thp 2097152\npagetables 8192\n",
        ),
        (
            "memory.pressure",
            "some avg10=0 total=7\nfull avg10=0 total=1\n",
        ),
        ("cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\n"),
    ] {
        machine.write(format!("{V2}/{file}"), text);
    }
    machine.write(format!("{V1}/cgroup.procs"), "");
    machine.write(
        format!("{V1}/memory.stat"),
        "pgfault 1\ntotal_pgfault 200\ntotal_pgmajfault 9\ntotal_rss_huge 2097152\n",
    );
    machine.write(
        "sys/fs/cgroup/cpu,cpuacct/web/cpuacct.stat",
        "user 3\nsystem 1\n",
    );
    machine
}

#[test]
fn a_group_of_version_2_is_found_by_name_and_by_directory() {
    let machine = groups();
    for name in ["a b/web", "/a b/web", "/sys/fs/cgroup/unified/a b/web"] {
        let mut counters =
            Counters::of_cgroup(&Root::at(machine.as_path()), Path::new(name)).unwrap();
        let snapshot = counters.read();
        let value = |name| snapshot.value(Scope::Cgroup, name);
        for (name, expected) in [
            ("page_faults_minor", 96),
            ("page_faults_major", 4),
            ("thp_fault_alloc", 6),
            ("direct_reclaimed_pages", 3),
            ("mapped_huge_anon", 4 << 20),
            ("mapped_huge_file", 2 << 20),
            ("page_tables", 8192),
            ("pressure_some", 7_000),
            ("cpu_user", 20_000),
            ("cpu_system", 10_000),
        ] {
            assert_eq!(value(name), Some(expected), "{name}");
        }
        let newer = missing(&snapshot, Scope::Cgroup, "swap_ins");
        assert!(newer.reason.contains("pswpin"), "{newer:?}");
    }
}

#[test]
fn a_group_of_version_1_has_less_and_says_so() {
    let machine = groups();
    let mut counters = Counters::of_cgroup(&Root::at(machine.as_path()), Path::new("web")).unwrap();
    let snapshot = counters.read();
    let value = |name| snapshot.value(Scope::Cgroup, name);
    assert_eq!(value("page_faults_minor"), Some(191));
    assert_eq!(value("mapped_huge_anon"), Some(2 << 20));
    assert_eq!(value("cpu_user"), Some(30_000_000));
    for name in ["thp_fault_alloc", "page_tables", "pressure_some"] {
        let missing = missing(&snapshot, Scope::Cgroup, name);
        assert_eq!(missing.fix.as_deref(), Some("cgroup version 2"), "{name}");
    }
}

#[test]
fn a_group_without_the_memory_controller_has_its_other_counters() {
    let machine = groups();
    fs::remove_file(machine.path(format!("{V2}/memory.stat"))).unwrap();
    let mut counters =
        Counters::of_cgroup(&Root::at(machine.as_path()), Path::new("a b/web")).unwrap();
    let snapshot = counters.read();
    assert_eq!(snapshot.value(Scope::Cgroup, "cpu_user"), Some(20_000));
    for name in ["page_faults_minor", "thp_fault_alloc"] {
        let missing = missing(&snapshot, Scope::Cgroup, name);
        assert!(missing.fix.unwrap().contains("subtree_control"), "{name}");
    }
    assert!(!counters.is_over());
    fs::remove_dir_all(machine.path(V2)).unwrap();
    assert!(counters.is_over());
    assert_eq!(counters.read().value(Scope::Cgroup, "cpu_user"), None);
}

/// The host's hierarchy, mounted in a cgroup namespace: the group `/` of the namespace is not the
/// one that is mounted.
#[test]
fn a_mount_of_another_namespace_does_not_show_its_root() {
    let machine = groups();
    machine.write("sys/fs/cgroup/memory/cgroup.procs", "");
    let find = |name: &str| Counters::of_cgroup(&Root::at(machine.as_path()), Path::new(name));
    assert!(find("/").is_ok());
    machine.write(
        "proc/self/mountinfo",
        "31 30 0:27 /../.. /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    );
    assert!(find("/").is_err());
    assert!(find("/../../web").is_ok());
}

#[test]
fn what_is_no_group_is_refused_with_the_place() {
    let machine = groups();
    let refusal = |name: &str| {
        Counters::of_cgroup(&Root::at(machine.as_path()), Path::new(name)).unwrap_err()
    };
    let said = refusal("nowhere\n").to_string();
    assert!(
        said.starts_with("nowhere\\n: no such cgroup (looked below /sys/"),
        "{said}"
    );
    machine.write("etc/passwd", "");
    assert!(refusal("/etc").to_string().contains("is not a cgroup"));
    machine.write(
        "proc/self/mountinfo",
        "30 1 0:26 / / rw - ext4 /dev/vda rw\n",
    );
    assert!(refusal("web").to_string().contains("no cgroup hierarchy"));
}
