// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines that offer little: old kernels, files that are missing, control groups, containers.

use serde_json::Value;
use toll_testkit::output::succeeds;
use toll_testkit::{Directory, schema};

use crate::{billed, bytes, check, reasons, unwrapped};

const MIB: u64 = 1 << 20;
const THP: &str = "sys/kernel/mm/transparent_hugepage";

/// Process 7 of a machine: 4 MiB of anonymous memory at an address without regions around it.
const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size: 4096 kB
Rss: 4096 kB
Anonymous: 4096 kB
AnonHugePages: 2048 kB
VmFlags: rd wr mr mw me ac sd
7f0000800000-7f0000801000 r-xp 00000000 00:00 0          [vdso]
Rss: 4 kB
VmFlags: rd ex de
";

const STAT: &str = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 5 5 0 0 20 0 1 0 100 1000 100 \
    0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 4096 0 0 0 0 0\n";

fn status(thp_enabled: &str) -> String {
    format!(
        "Name:\ta) b\nState:\tS (sleeping)\nTgid:\t7\nPPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\n\
         Gid:\t0\t0\t0\t0\nVmRSS:\t4100 kB\nVmPTE:\t60 kB\nThreads:\t1\n{thp_enabled}CapEff:\t0\n"
    )
}

/// A machine like Linux 5.15, without sizes of huge pages and THPeligible.
pub fn machine() -> Directory {
    Directory::with(&[
        ("proc/7/stat", STAT),
        ("proc/7/status", &status("THP_enabled:\t1\n")),
        ("proc/7/smaps", SMAPS),
        ("proc/meminfo", "MemTotal: 1048576 kB\n"),
        ("proc/uptime", "7200.00 100.00\n"),
        ("proc/vmstat", "thp_fault_alloc 75\nthp_fault_fallback 25\n"),
        (&format!("{THP}/enabled"), "[always] madvise never\n"),
        (
            &format!("{THP}/defrag"),
            "always defer defer+madvise [madvise] never\n",
        ),
        (
            &format!("{THP}/shmem_enabled"),
            "always within_size advise [never] deny force\n",
        ),
        (&format!("{THP}/khugepaged/pages_to_scan"), "4096\n"),
        (&format!("{THP}/khugepaged/scan_sleep_millisecs"), "10000\n"),
        (&format!("{THP}/khugepaged/full_scans"), "2\n"),
        (&format!("{THP}/khugepaged/max_ptes_none"), "511\n"),
    ])
}

fn why(machine: &Directory) -> Value {
    let output = machine
        .as_machine(&["why", "7", "--json"])
        .output()
        .unwrap();
    let report = schema::json("why", &output);
    check(&report);
    report
}

/// The first reason of the anonymous memory.
fn reason(report: &Value) -> String {
    reasons(&report["mappings"][0])[0].0.to_owned()
}

#[test]
fn an_old_kernel_gives_the_same_bill() {
    let machine = machine();
    let report = why(&machine);
    assert_eq!(report["name"], "a) b");
    assert_eq!(bytes(&report["resident_bytes"]), 4 * MIB + 4096);
    assert_eq!(bytes(&report["huge_bytes"]), 2 * MIB);
    assert_eq!(billed(&report, "waiting"), 2 * MIB);
    assert_eq!(billed(&report, "kernel"), 4096);
    assert_eq!(bytes(&report["eligible_bytes"]), 4 * MIB);
    let pace = &report["khugepaged"];
    assert_eq!(bytes(&pace["process_bytes"]), 4 * MIB);
    assert_eq!(pace["process_ns"], 2.5e9);
    assert_eq!(pace["mean_ns"], 3600e9);
    assert_eq!(report["missing"][0]["what"], "edges of mappings");
    let text = succeeds(&machine.as_machine(&["why", "7"]).output().unwrap());
    let text = unwrapped(&text);
    for part in [
        "since boot a pass took 60 min",
        "25.0 % of this machine's huge faults",
        "a) b (7)",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn each_setting_forbids_and_has_its_fix() {
    let cases = [
        (
            "enabled",
            "always madvise [never]\n",
            "never",
            "echo madvise >",
        ),
        (
            "enabled",
            "always [madvise] never\n",
            "not-advised",
            "madvise(MADV_HUGEPAGE)",
        ),
        (
            "hugepages-2048kB/enabled",
            "always inherit madvise [never]\n",
            "never",
            "hugepages-2048kB/enabled",
        ),
        (
            "khugepaged/pages_to_scan",
            "0\n",
            "no-khugepaged",
            "pages_to_scan",
        ),
    ];
    for (file, text, expected, fix) in cases {
        let machine = machine();
        machine.write(format!("{THP}/{file}"), text);
        let report = why(&machine);
        assert_eq!(reason(&report), expected, "{file} {text}");
        let said = report["mappings"][0]["fix"].as_str().unwrap();
        assert!(said.contains(fix), "{said}");
    }
    let machine = machine();
    machine.write("proc/7/status", status("THP_enabled:\t0\n"));
    assert_eq!(reason(&why(&machine)), "disabled");
}

#[test]
fn a_kernel_that_refuses_for_another_reason_is_believed() {
    let machine = machine();
    machine.write(
        "proc/7/smaps",
        SMAPS.replace("VmFlags: rd wr", "THPeligible: 0\nVmFlags: rd wr"),
    );
    assert_eq!(reason(&why(&machine)), "refused");
}

#[test]
fn without_transparent_huge_pages_it_is_said() {
    let machine = machine();
    std::fs::remove_dir_all(machine.path("sys")).unwrap();
    let report = why(&machine);
    assert_eq!(report["thp"]["enabled"], Value::Null);
    assert_eq!(reason(&report), "missing");
}

#[test]
fn without_smaps_the_kernels_sum_is_left() {
    let machine = machine();
    std::fs::remove_file(machine.path("proc/7/smaps")).unwrap();
    let report = why(&machine);
    assert_eq!(billed(&report, "unread"), 4100 << 10);
    let fix = report["missing"][0]["fix"].as_str().unwrap();
    assert!(fix.contains("CONFIG_PROC_PAGE_MONITOR"), "{fix}");
}

#[test]
fn damaged_files_are_named() {
    let machine = machine();
    machine.write("proc/7/smaps", "nonsense\n");
    let output = machine.as_machine(&["why", "7"]).output().unwrap();
    toll_testkit::output::assert_fails(&output, 1, &["/proc/7/smaps", "nonsense"]);
}

/// Both versions of control groups: the limit is a reason, and the working set is divided.
#[test]
fn a_full_group_is_the_reason() {
    let v2 = [
        ("proc/7/cgroup", "0::/pod\n"),
        ("sys/fs/cgroup/pod/memory.max", "8388608\n"),
        ("sys/fs/cgroup/pod/memory.current", "8000000\n"),
        (
            "sys/fs/cgroup/pod/memory.stat",
            "anon 1000000\nshmem 4096\ninactive_file 500000\nactive_file 0\nkernel 70000\n",
        ),
    ];
    let v1 = [
        ("proc/7/cgroup", "4:memory:/pod\n"),
        (
            "sys/fs/cgroup/memory/pod/memory.limit_in_bytes",
            "8388608\n",
        ),
        (
            "sys/fs/cgroup/memory/pod/memory.usage_in_bytes",
            "8000000\n",
        ),
        (
            "sys/fs/cgroup/memory/pod/memory.stat",
            "active_file 0\ntotal_rss 1000000\ntotal_shmem 4096\ntotal_inactive_file 500000\ntotal_active_file 0\n",
        ),
        (
            "sys/fs/cgroup/memory/pod/memory.kmem.usage_in_bytes",
            "70000\n",
        ),
    ];
    for files in [&v2[..], &v1[..]] {
        let machine = machine();
        for (name, text) in files {
            machine.write(name, text);
        }
        let report = why(&machine);
        assert_eq!(reason(&report), "group-full", "{files:?}");
        let group = &report["cgroup"];
        assert_eq!(bytes(&group["working_set_bytes"]), 7_500_000);
        assert_eq!(bytes(&group["anonymous_bytes"]), 1_000_000);
        assert_eq!(bytes(&group["kernel_bytes"]), 70_000);
        assert_eq!(bytes(&group["limit_bytes"]), 8 * MIB);
        let fix = report["mappings"][0]["fix"].as_str().unwrap();
        assert!(fix.contains("/pod"), "{fix}");
    }
}

/// A container without /sys, with a /proc of its own.
#[test]
fn a_container_without_sys_says_what_it_lacks() {
    let directory = Directory::empty();
    let line = "mount -t tmpfs none /sys || exit 99
        sleep 60 & $TOLLFREE why $! --json; status=$?; kill $!; exit $status";
    let Some(output) = directory.in_own_mounts(line) else {
        return;
    };
    let report = schema::json("why", &output);
    check(&report);
    assert_eq!(report["thp"]["enabled"], Value::Null);
    assert!(bytes(&report["resident_bytes"]) > 0);
    assert!(
        billed(&report, "missing") + billed(&report, "short") > 0,
        "{report:#}"
    );
}

/// PostgreSQL: whether `huge_pages = try` worked.
#[test]
fn postgres_shows_whether_try_worked() {
    let machine = machine();
    let shared =
        "7f0010000000-7f0010400000 rw-s 00000000 00:01 5      /dev/zero (deleted)\nRss: 4096 kB\n";
    machine.write("proc/7/smaps", format!("{SMAPS}{shared}"));
    std::fs::create_dir_all(machine.path("proc/7/cwd")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/postgres", machine.path("proc/7/exe")).unwrap();
    machine.write("proc/7/cmdline", "postgres\0-D\0data\0");
    machine.write("proc/7/cwd/postgresql.conf", "huge_pages = try\n");
    let report = why(&machine);
    let setting = &report["settings"][0];
    assert_eq!(
        (&setting["value"], &setting["origin"]),
        (&"try".into(), &"file".into())
    );
    assert_eq!(
        billed(&report, "shared"),
        4 * MIB,
        "try did not work: {report:#}"
    );
    let line = report["bill"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["reason"] == "shared");
    let fix = line.unwrap()["fix"].as_str().unwrap();
    assert!(fix.contains("huge_pages = on"), "{fix}");
    let hugetlb = "7f0010000000-7f0010400000 rw-s 00000000 00:0f 5      /anon_hugepage (deleted)\n\
        KernelPageSize: 2048 kB\nShared_Hugetlb: 4096 kB\nVmFlags: rd wr ht\n";
    machine.write("proc/7/smaps", format!("{SMAPS}{hugetlb}"));
    let report = why(&machine);
    assert_eq!(bytes(&report["huge_bytes"]), 6 * MIB, "it worked");
}
