// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dashboard: each metric that it names is exported.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use toll_testkit::Directory;

use crate::Exporter;

/// Every expression in a document.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let text = fields
                .iter()
                .filter(|it| ["expr", "query"].contains(&it.0.as_str()));
            found.extend(text.filter_map(|it| it.1.as_str().map(str::to_owned)));
            fields.values().for_each(|it| expressions(it, found));
        }
        Value::Array(all) => all.iter().for_each(|it| expressions(it, found)),
        _ => {}
    }
}

/// The names of metrics in expressions.
fn names(expressions: &[String]) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expressions.iter().flat_map(|it| it.split(|c| !is_part(c)));
    let names = words.filter(|word| word.starts_with("tollfree_"));
    names.map(str::to_owned).collect()
}

#[test]
fn each_metric_of_the_dashboard_is_exported() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/grafana/tollfree.json");
    let dashboard = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    let named = names(&all);
    assert!(named.len() >= 10, "{named:?}");
    let machine = Directory::with(&[
        (
            "proc/vmstat",
            "pgfault 9\npgmajfault 1\nthp_fault_alloc 1\nthp_fault_fallback 1\ncompact_stall 1\npgsteal_direct 1\n",
        ),
        ("proc/interrupts", "  CPU0\nTLB: 5\n"),
        (
            "proc/stat",
            "cpu  10 5 20 900 1 2 3 0 0 0\ncpu0 5 0 0 0 0 0 0 0 0 0\n",
        ),
        (
            "proc/meminfo",
            "AnonHugePages: 1 kB\nShmemPmdMapped: 1 kB\nFilePmdMapped: 1 kB\nHugetlb: 1 kB\nPageTables: 1 kB\n",
        ),
        ("proc/pressure/memory", "some total=1\nfull total=1\n"),
        (
            "proc/self/mountinfo",
            "33 30 0:29 / /g rw - cgroup2 cgroup2 rw\n",
        ),
        ("g/cgroup.procs", ""),
        ("g/memory.stat", "pgfault 9\npgmajfault 1\nanon_thp 1\n"),
        ("g/cpu.stat", "user_usec 5\nsystem_usec 5\n"),
        ("proc/100/cgroup", "0::/\n"),
        ("proc/100/smaps_rollup", "AnonHugePages: 1 kB\n"),
    ]);
    let process = |faults: u64| {
        let text =
            format!("100 (x) S 1 1 1 0 -1 0 {faults} 0 2 0 3 {faults} 0 0 20 0 1 0 77 0 512 0\n");
        let new = machine.write("proc/100/stat.new", text);
        fs::rename(new, machine.path("proc/100/stat")).unwrap();
    };
    process(5);
    let root = machine.as_path().to_str().unwrap().to_owned();
    let exporter = Exporter::start(&machine, &["--root", &root]);
    process(50);
    let exported = std::iter::repeat_with(|| exporter.metrics().names())
        .find(|it| it.contains("tollfree_process_lost_cpu_seconds_total"))
        .unwrap();
    let absent: Vec<&String> = named.difference(&exported).collect();
    assert!(absent.is_empty(), "{absent:?}");
}
