// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree kernel luf` on fixture kernels.

use std::path::Path;
use std::process::Command;

use assert_cmd::prelude::*;
use toll_testkit::{Directory, schema};

const KERNEL: &[(&str, &str)] = &[
    ("enabled", "1\n"),
    ("pool_pages", "1200\n"),
    ("pool_max_pages", "0\n"),
    ("direct_batch_pages", "0\n"),
    ("max_age_ms", "30000\n"),
    ("stats/deferred_kswapd", "700000\n"),
    ("stats/deferred_direct", "4000\n"),
    ("stats/deferred_compaction", "0\n"),
    ("stats/refused_writable", "17\n"),
    ("stats/flushes_kswapd", "150\n"),
    ("stats/flushes_mm", "3\n"),
    ("stats/cpus_interrupted", "300\n"),
    ("stats/cpus_spared", "100\n"),
    ("stats/released_flushed", "703000\n"),
    ("stats/released_elided", "0\n"),
    ("stats/writers_waited", "2\n"),
    ("stats/writers_ns", "84000\n"),
    ("stats/longest_drain_ns", "61000\n"),
    ("stats/pages_per_drain", "64 10\n2048 40\n4096 100\n"),
];

fn machine(files: &[(&str, &str)]) -> Directory {
    let directory = Directory::empty();
    for (name, text) in files {
        directory.write(Path::new("sys/kernel/mm/luf").join(name), text);
    }
    directory
}

fn luf(machine: &Directory, arguments: &[&str]) -> Command {
    machine.as_machine(&[&["kernel", "luf"], arguments].concat())
}

#[test]
fn one_screen() {
    let output = luf(&machine(KERNEL), &[]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    for line in [
        "lazy unmap flush  on, 1,200 pages wait",
        "unmapped lazily   704,000 pages (kswapd 700,000, direct 4,000)",
        "released          703,000 pages",
        "drains            150, half of them of at least 4,096 pages",
        "flushes           kswapd 150, mm 3",
        "CPUs              interrupted 300, spared 100 (25.0 %)",
        "refused           writable 17",
        "writers           2 waited, 84 us together",
        "longest drain     61 us",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\nin\n{text}");
    }
    assert!(text.lines().count() < 25, "{text}");
}

#[test]
fn json_keeps_to_its_schema() {
    let output = luf(&machine(KERNEL), &["--json"]).assert().success();
    let report = schema::json("luf", output.get_output());
    assert_eq!(report["counts"]["deferred_kswapd"], 700_000);
    assert_eq!(report["pages_per_drain"][1][1], 40);
}

#[test]
fn nothing_yet_is_said_so() {
    let output = luf(&machine(&KERNEL[..5]), &[]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    assert!(text.contains("drains            none"), "{text}");
    assert!(text.contains("spared 0 (-)"), "{text}");
}

#[test]
fn another_kernel_is_4() {
    let output = luf(&machine(&[]), &[]).assert().code(4);
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert_eq!(
        said,
        "tollfree: /sys/kernel/mm/luf: not found: this kernel has no lazy unmap flush (CONFIG_LUF)\n"
    );
}
