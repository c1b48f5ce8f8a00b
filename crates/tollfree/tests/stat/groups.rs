// SPDX-License-Identifier: MIT OR Apache-2.0
//! Control groups.

use std::fs;
use std::path::{Path, PathBuf};

use toll_testkit::Directory;
use toll_testkit::output::{assert_fails, stderr, succeeds};
use toll_testkit::process::Running;

use crate::{counter, report, value};

const GROUP: &str = "sys/fs/cgroup/user.slice/a\\x2db c";

fn machine() -> Directory {
    Directory::with(&[
        (
            "proc/self/mountinfo",
            "33 30 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("proc/vmstat", "pgfault 5\npgmajfault 1\n"),
        (&format!("{GROUP}/cgroup.procs"), ""),
        (
            &format!("{GROUP}/memory.stat"),
            "pgfault 50\npgmajfault 1\nanon_thp 2097152\n",
        ),
    ])
}

/// The group of this test's own process, where its hierarchy is mounted as usual.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let mount = match controllers {
            "" => "/sys/fs/cgroup",
            "memory" => "/sys/fs/cgroup/memory",
            _ => return None,
        };
        let path = Path::new(mount).join(path.trim_start_matches('/'));
        path.join("memory.stat").exists().then_some(path)
    };
    groups.lines().find_map(path)
}

#[test]
fn the_group_of_this_process_is_counted() {
    let Some(group) = own_group() else {
        eprintln!("skipped: the own cgroup is not visible");
        return;
    };
    let directory = Directory::empty();
    let name = group.to_str().unwrap();
    let line = ["--json", "stat", "--cgroup", name, "--for", "200ms"];
    let report = report(&directory.run(&line));
    assert_eq!(report["scope"], "cgroup");
    assert!(value(&report, "cgroup", "page_faults") >= 0.0);
    assert!(counter(&report, "cgroup", "mapped_huge_anon")["value"].is_number());
}

#[test]
fn a_group_with_a_strange_name_is_named_and_counted() {
    let machine = machine();
    for name in ["user.slice/a\\x2db c", "/user.slice/a\\x2db c"] {
        let line = ["stat", "--cgroup", name, "--for", "20ms"];
        let text = succeeds(&machine.as_machine(&line).output().unwrap());
        assert!(text.starts_with(&format!("cgroup {name}: ")), "{text}");
        assert!(text.contains("2 MiB"), "{text}");
    }
}

/// A group is removed while it is watched: what was counted is reported.
#[test]
fn a_group_that_vanishes_ends_the_measurement() {
    let machine = machine();
    let line = [
        "--json",
        "stat",
        "-I",
        "20ms",
        "--cgroup",
        "user.slice/a\\x2db c",
    ];
    let mut stat = Running::start(&mut machine.as_machine(&line));
    let text = format!("{GROUP}/memory.stat");
    let first: serde_json::Value = serde_json::from_str(&stat.line()).unwrap();
    assert_eq!(value(&first, "cgroup", "page_faults_minor"), 0.0);
    let new = machine.write(
        format!("{text}.new"),
        "pgfault 90\npgmajfault 1\nanon_thp 0\n",
    );
    fs::rename(new, machine.path(&text)).unwrap();
    let mut faults = 0.0;
    while faults < 40.0 {
        let next: serde_json::Value = serde_json::from_str(&stat.line()).unwrap();
        faults += counter(&next, "cgroup", "page_faults_minor")["value"]
            .as_f64()
            .unwrap_or(0.0);
    }
    fs::remove_dir_all(machine.path(GROUP)).unwrap();
    assert!(stat.child.wait().unwrap().success());
}

#[test]
fn what_is_no_group_is_refused() {
    let machine = machine();
    machine.write("etc/x", "");
    for (name, says) in [
        ("/etc", "is not a cgroup"),
        (
            "user.slice/none",
            "no such cgroup (looked below /sys/fs/cgroup)",
        ),
        ("user.slice", "no such cgroup"),
        ("\x1b[2Jx", "\\u{1b}[2Jx"),
    ] {
        let output = machine
            .as_machine(&["stat", "--cgroup", name])
            .output()
            .unwrap();
        assert_fails(&output, 3, &[says]);
        assert!(!stderr(&output).contains('\x1b'));
    }
}
