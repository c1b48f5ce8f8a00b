// SPDX-License-Identifier: MIT OR Apache-2.0
//! Questions that are asked in forums and bug trackers: a small program has the problem, and the
//! report has the answer.

use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;
use toll_testkit::Directory;
use toll_testkit::machine::{is_root, thp_is_madvise};
use toll_testkit::process::wait_until;

use crate::{Memory, billed, bytes, reasons};

const MIB: u64 = 1 << 20;

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("no {field} in {value:#}"))
}

/// "The resident memory is absurd with huge pages": one byte in each huge page.
#[test]
fn absurd_resident_memory_is_unused_parts_of_huge_pages() {
    if !thp_is_madvise() {
        return;
    }
    let directory = Directory::empty();
    let Some(memory) = Memory::start(&directory, "bloat") else {
        return;
    };
    let report = memory.why(&directory);
    let unused = &report["unused"];
    assert_eq!(
        bytes(&unused["huge_pages"]),
        bytes(&unused["read"]),
        "all were read"
    );
    let found = unused["bytes"].as_f64().unwrap();
    assert_eq!(found, (8 * MIB - 4 * 4096) as f64, "{unused}");
    assert!(
        memory
            .text(&directory)
            .contains("zeros in huge pages (likely bloat)")
    );
    // Where each page is written, nothing is unused.
    let full = Memory::start(&directory, "advised").unwrap();
    assert_eq!(full.why(&directory)["unused"]["bytes"], 0.0);
}

/// "Half of it is in 4 KiB pages although jemalloc has thp:always": what it purges splits them.
#[test]
fn purged_memory_is_a_split_huge_page() {
    if !thp_is_madvise() {
        return;
    }
    let directory = Directory::empty();
    let Some(memory) = Memory::start(&directory, "purged") else {
        return;
    };
    let mapping = memory.mapping(&directory);
    assert_eq!(reasons(&mapping), [("waiting", 4 * MIB)], "{mapping:#}");
    let report = memory.why(&directory);
    let waiting = billed(&report, "waiting");
    assert!(waiting >= 4 * MIB, "{report:#}");
    if !is_root() {
        let missing = report["missing"].to_string();
        assert!(missing.contains("CAP_SYS_ADMIN"), "{missing}");
        return;
    }
    let sizes = report["folios"]["sizes"].as_array().unwrap();
    let split = sizes.iter().find(|size| size["page_bytes"] == 2 * MIB);
    assert_eq!(bytes(&split.unwrap()["bytes"]), 4 * MIB, "{report:#}");
    // "Resident memory of 200 MB, working set of 2 GB": it is not free, and counts for the cgroup.
    assert_eq!(
        bytes(&report["folios"]["retained_bytes"]),
        4 * MIB,
        "{report:#}"
    );
    let shown = memory.text(&directory);
    assert!(shown.contains("split huge pages"), "{shown}");
    assert!(shown.contains("count for the cgroup until then"), "{shown}");
}

/// "numpy's advice outlives its array": advice stays on addresses of the heap.
#[test]
fn advice_outlives_the_block() {
    if !thp_is_madvise() {
        return;
    }
    let directory = Directory::empty();
    let Some(memory) = Memory::start(&directory, "sticky") else {
        return;
    };
    let mapping = memory.mapping(&directory);
    assert_eq!(
        (&mapping["kind"], &mapping["advice"]),
        (&"heap".into(), &"huge".into())
    );
    let report = memory.why(&directory);
    assert_eq!(bytes(&report["advised_huge_bytes"]), 4 * MIB, "{report:#}");
    let shown = memory.text(&directory);
    assert!(
        shown.contains("MADV_HUGEPAGE stays until the addresses are unmapped"),
        "{shown}"
    );
}

/// "5.7 of 14.5 GiB stay in 4 KiB pages": many mappings that are too short for a huge page.
#[test]
fn short_mappings_stay_in_4_kib_pages() {
    let directory = Directory::empty();
    let arguments = ["many", "1000", "1073741824"];
    let Some(memory) = Memory::with(&directory, &arguments, |_| ()) else {
        return;
    };
    let report = memory.why(&directory);
    let lines = report["bill"].as_array().unwrap();
    let line = lines.iter().find(|line| line["reason"] == "short").unwrap();
    // One page in each 16th.
    assert!(bytes(&line["mappings"]) >= 1000 / 16, "{line}");
    assert!(text(line, "fix").contains("larger pieces"), "{line}");
}

/// "The setting is right, and there is still no huge page": the parent switched them off.
#[test]
fn a_switch_that_was_inherited_names_the_parent() {
    let directory = Directory::empty();
    let disable = |command: &mut Command| {
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
                Ok(())
            })
        };
    };
    // Compiles it.
    if Memory::start(&directory, "plain").is_none() {
        return;
    }
    let mut shell = Command::new("sh");
    // A background command has /dev/null as its stdin unless another descriptor is given.
    shell.args([
        "-c",
        "exec 3<&0; ./memory advised <&3 >address & echo $!; wait",
    ]);
    shell
        .current_dir(directory.as_path())
        .stdin(std::process::Stdio::piped());
    disable(&mut shell);
    let mut shell = toll_testkit::process::Running::start(&mut shell);
    let pid = shell.line();
    wait_until("the memory", || directory.read("address").ends_with('\n'));
    let output = directory.run(&["why", &pid, "--json"]);
    let report = toll_testkit::schema::json("why", &output);
    assert_eq!(report["thp"]["disabled"], true);
    let lines = report["bill"].as_array().unwrap().iter();
    let fixes: Vec<&str> = lines
        .filter(|line| line["reason"] == "disabled")
        .map(|line| text(line, "fix"))
        .collect();
    let parent = format!("process {} (sh) has it too", shell.pid());
    assert!(fixes.iter().any(|fix| fix.contains(&parent)), "{report:#}");
}

/// "When does khugepaged come?"
#[test]
fn the_time_of_khugepaged_follows_from_its_settings() {
    if !thp_is_madvise() {
        return;
    }
    let directory = Directory::empty();
    let Some(memory) = Memory::start(&directory, "purged") else {
        return;
    };
    let report = memory.why(&directory);
    let number = |name: &str| -> f64 {
        let path = format!("/sys/kernel/mm/transparent_hugepage/khugepaged/{name}");
        std::fs::read_to_string(path)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    let rate = number("pages_to_scan") * 4096.0 / number("scan_sleep_millisecs") * 1e3;
    let pace = &report["khugepaged"];
    assert_eq!(pace["bytes_per_second"].as_f64(), Some(rate));
    let eligible = pace["process_bytes"].as_f64().unwrap();
    assert!(eligible >= (8 * MIB) as f64, "{pace}");
    let own = pace["process_ns"].as_f64().unwrap();
    assert!((own - eligible / rate * 1e9).abs() < 1.0, "{pace}");
    assert!(pace["machine_ns"].as_f64().unwrap() >= own, "{pace}");
    let text = memory.text(&directory);
    assert!(text.contains("khugepaged comes within"), "{text}");
}

/// Settings of the allocator, from the environment of the process.
#[test]
fn the_allocators_setting_is_shown() {
    let directory = Directory::empty();
    let tunable = |command: &mut Command| {
        command.env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
    };
    let Some(memory) = Memory::with(&directory, &["plain"], tunable) else {
        return;
    };
    let report = memory.why(&directory);
    let Some(setting) = report["settings"].as_array().unwrap().first() else {
        eprintln!("skipped: not glibc");
        return;
    };
    assert_eq!(text(setting, "name"), "glibc.malloc.hugetlb");
    assert_eq!(
        (text(setting, "value"), text(setting, "origin")),
        ("1", "environment")
    );
    assert_eq!(setting["advises"], true);
}
