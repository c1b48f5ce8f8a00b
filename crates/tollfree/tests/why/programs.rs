// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs with memory of each kind: the reason is found, to the byte.

use toll_testkit::Directory;
use toll_testkit::machine::thp_is_madvise;

use crate::{Memory, bytes, reasons};

const MIB: u64 = 1 << 20;

/// Kind of the program, kind of the mapping, its reasons, bytes in huge pages.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, u64)], u64);

#[test]
fn the_reason_is_exact() {
    if !thp_is_madvise() {
        return;
    }
    let directory = Directory::empty();
    let cases: [Case; 8] = [
        ("plain", "anonymous", &[("not-advised", 8 * MIB)], 0),
        ("advised", "anonymous", &[], 8 * MIB),
        (
            "edges",
            "anonymous",
            &[("edge", 2 * MIB), ("waiting", 2 * MIB)],
            0,
        ),
        ("short", "anonymous", &[("short", MIB)], 0),
        ("unaligned", "anonymous", &[("unaligned", 2 * MIB)], 0),
        (
            "never",
            "anonymous",
            &[("advised-never", 8 * MIB), ("not-advised", 0)],
            0,
        ),
        ("disabled", "anonymous", &[("disabled", 8 * MIB)], 0),
        ("hugetlb", "hugetlb", &[], 2 * MIB),
    ];
    for (kind, of, expected, huge) in cases {
        let Some(memory) = Memory::start(&directory, kind) else {
            continue;
        };
        let mapping = memory.mapping(&directory);
        assert_eq!(mapping["kind"], of, "{kind}");
        assert_eq!(reasons(&mapping), expected, "{kind}: {mapping:#}");
        assert_eq!(bytes(&mapping["huge_bytes"]), huge, "{kind}: {mapping:#}");
        memory.why(&directory);
    }
}

#[test]
fn shared_memory_follows_shmem_enabled() {
    let directory = Directory::empty();
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    if !setting.is_ok_and(|setting| setting.contains("[never]")) {
        eprintln!("skipped: shared memory may be huge here");
        return;
    }
    let Some(memory) = Memory::start(&directory, "memfd") else {
        return;
    };
    let mapping = memory.mapping(&directory);
    assert_eq!(mapping["kind"], "shared-memory");
    assert_eq!(reasons(&mapping), [("shared", 4 * MIB)]);
    let fix = mapping["fix"].as_str().unwrap();
    assert!(fix.contains("shmem_enabled"), "{fix}");
    // The name has a line feed and an escape sequence; none of it reaches the terminal.
    let text = memory.text(&directory);
    assert!(text.contains("memfd:a"), "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
}

#[test]
fn a_file_is_told_from_a_tmpfs() {
    let directory = Directory::empty();
    let path = directory.path("file");
    let of = |path: &std::path::Path| {
        let path = path.to_str().unwrap();
        Memory::with(&directory, &["file", path], |_| ()).map(|it| it.mapping(&directory))
    };
    let Some(mapping) = of(&path) else {
        return;
    };
    if mapping["kind"] == "tmpfs" {
        eprintln!("skipped: temporary files are on a tmpfs");
    } else {
        assert_eq!(mapping["kind"], "file");
        assert_eq!(reasons(&mapping), [("file", 4 * MIB)]);
    }
    let path = format!("/dev/shm/tollfree-why-{}", std::process::id());
    let mapping = of(path.as_ref());
    let _ = std::fs::remove_file(&path);
    let mapping = mapping.unwrap();
    assert_eq!(mapping["kind"], "tmpfs", "{mapping:#}");
    assert!(
        mapping["fix"].as_str().unwrap().contains("huge="),
        "{mapping:#}"
    );
}

#[test]
fn mappings_are_chosen_by_address_kind_and_name() {
    let directory = Directory::empty();
    let Some(memory) = Memory::start(&directory, "plain") else {
        return;
    };
    let pid = memory.pid();
    let chosen = |what: &str| {
        let output = directory.run(&["why", &pid, what, "--json"]);
        let report = toll_testkit::schema::json("why", &output);
        crate::check(&report);
        report["mappings"].as_array().unwrap().clone()
    };
    let plain = memory.address.trim_start_matches("0x");
    assert_eq!(chosen(plain), chosen(&memory.address));
    assert_eq!(chosen("stack")[0]["name"], "[stack]");
    let libc = chosen("libc.so");
    assert!(libc.len() > 1 && libc.iter().all(|it| it["kind"] == "file"));
    for (what, code, says) in [
        ("0x10", 3, "no mapping at 0x10"),
        ("no\nsuch", 3, "no mapping with no\\nsuch"),
        ("", 2, "which mapping?"),
    ] {
        let output = directory.run(&["why", &pid, what]);
        toll_testkit::output::assert_fails(&output, code, &[says]);
    }
}
