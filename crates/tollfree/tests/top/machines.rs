// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fixture machines.

use std::fs;

use serde_json::Value;
use toll_testkit::Directory;
use toll_testkit::output::{assert_fails, json, succeeds};
use toll_testkit::process::Running;

use crate::{GROUP, Machine, check, row};

/// JSON documents of a running `top --json`.
struct Lines(Running);

impl Lines {
    fn of(machine: &Machine) -> Lines {
        let mut top = machine.0.as_machine(&["--json", "top", "-I", "20ms"]);
        Lines(Running::start(&mut top))
    }

    /// The first document that satisfies the condition.
    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let document = serde_json::from_str(&self.0.line()).unwrap();
            check(&document);
            if is_it(&document) {
                return document;
            }
        }
    }
}

fn number(row: &Value, field: &str) -> f64 {
    row[field]
        .as_f64()
        .unwrap_or_else(|| panic!("{field} of {row}"))
}

#[test]
fn an_interval_has_the_faults_of_its_time() {
    let machine = Machine::new();
    let mut lines = Lines::of(&machine);
    let quiet = lines.until(|_| true);
    assert_eq!(number(row(&quiet, "processes", "pid", 100), "faults"), 0.0);
    machine.process(100, "server", 0, 60, "0::/web.slice/a\u{1b}[2J\n");
    let document = lines.until(|it| number(row(it, "processes", "pid", 100), "faults") > 0.0);
    let server = row(&document, "processes", "pid", 100);
    assert_eq!(number(server, "faults"), 10.0);
    assert_eq!(number(server, "major_faults"), 0.0);
    assert_eq!(number(server, "cpu_ns"), 100e6);
    assert_eq!(number(server, "huge_bytes"), 2097152.0);
    assert!(number(server, "loss_ns") > 0.0 && number(server, "loss_share") < 1.0);
    assert_eq!(
        document["processes"][0]["pid"], 100,
        "the largest loss first"
    );
    assert_eq!(
        number(row(&document, "processes", "pid", 101), "loss_share"),
        0.0
    );
}

/// A thread of the kernel works for memory with all of its time; others are not listed.
#[test]
fn threads_for_memory_are_listed() {
    let machine = Machine::new();
    let mut lines = Lines::of(&machine);
    let document = lines.until(|_| true);
    let names: Vec<&Value> = document["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["command"])
        .collect();
    assert!(!names.contains(&&"kthreadd".into()), "{names:?}");
    machine.process(40, "kswapd0", 0x0020_0000, 5, "");
    let document = lines.until(|it| number(row(it, "processes", "pid", 40), "cpu_ns") > 0.0);
    assert_eq!(
        number(row(&document, "processes", "pid", 40), "loss_share"),
        1.0
    );
}

#[test]
fn a_cgroup_has_its_own_counters_or_the_sum_of_its_processes() {
    let machine = Machine::new();
    let mut lines = Lines::of(&machine);
    lines.until(|_| true);
    machine.group(800);
    machine.process(101, "idle) S", 0, 9, "0::/elsewhere\n");
    let web = "/web.slice/a\u{1b}[2J";
    let document = lines.until(|it| number(row(it, "cgroups", "cgroup", web), "faults") > 0.0);
    let web = row(&document, "cgroups", "cgroup", web);
    assert_eq!(
        (number(web, "faults"), &web["counted_by"]),
        (300.0, &"kernel".into())
    );
    assert_eq!(number(web, "huge_bytes"), 2097152.0);
    let other = row(&document, "cgroups", "cgroup", "/elsewhere");
    assert_eq!(
        (&other["counted_by"], &other["processes"]),
        (&"processes".into(), &1.into())
    );
}

#[test]
fn a_cgroup_of_version_1_is_counted() {
    let machine = Machine::new();
    machine.write(
        "proc/self/mountinfo",
        "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    );
    machine.process(100, "server", 0, 50, "4:memory:/box\n0::/\n");
    machine.write("sys/fs/cgroup/memory/box/cgroup.procs", "");
    let stat = "total_pgfault 5\ntotal_pgmajfault 1\ntotal_rss_huge 4194304\n";
    machine.write("sys/fs/cgroup/memory/box/memory.stat", stat);
    let document = Lines::of(&machine).until(|_| true);
    let group = row(&document, "cgroups", "cgroup", "/box");
    assert_eq!(number(group, "huge_bytes"), 4194304.0);
    assert_eq!(group["counted_by"], "kernel");
}

/// Processes end, and ids are used again.
#[test]
fn a_process_that_ends_is_no_error() {
    let machine = Machine::new();
    let mut lines = Lines::of(&machine);
    lines.until(|_| true);
    fs::remove_dir_all(machine.0.path("proc/101")).unwrap();
    let has = |it: &Value| {
        it["processes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["pid"] == 101)
    };
    lines.until(|it| !has(it));
    machine.process(101, "new", 0, 4, "0::/elsewhere\n");
    let document = lines.until(has);
    let new = row(&document, "processes", "pid", 101);
    assert_eq!(
        (&new["command"], number(new, "faults")),
        (&"new".into(), 6.0)
    );
}

/// Names are the owners' choice: no control character reaches a terminal.
#[test]
fn hostile_names_are_harmless() {
    let machine = Machine::new();
    machine.process(
        102,
        "\u{1b}]0;x\u{7}\u{202e}",
        0,
        7,
        "0::/web.slice/a\u{1b}[2J\n",
    );
    let line = ["top", "-n", "2", "-I", "20ms"];
    let mut top = Running::start(&mut machine.0.as_machine(&line));
    let mut text = top.line();
    machine.process(
        102,
        "\u{1b}]0;x\u{7}\u{202e}",
        0,
        9,
        "0::/web.slice/a\u{1b}[2J\n",
    );
    machine.group(900);
    for _ in 0..12 {
        text += &top.line();
    }
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(!text.contains('\u{202e}'), "{text:?}");
}

#[test]
fn a_machine_with_nothing_explains_itself() {
    let machine = Directory::empty();
    let line = ["--json", "top", "--once", "-I", "20ms"];
    let document = json(&machine.as_machine(&line).output().unwrap());
    check(&document);
    assert_eq!(document["processes"], Value::Array(Vec::new()));
    assert_eq!(document["machine"]["loss_ns"], Value::Null);
    let text = succeeds(&machine.as_machine(&line[1..]).output().unwrap());
    assert!(text.contains("not measurable here"), "{text}");
    assert!(text.contains("outside of the container"), "{text}");
}

#[test]
fn memory_that_may_not_be_read_is_explained() {
    let machine = Machine::new();
    fs::remove_file(machine.0.path("proc/100/smaps_rollup")).unwrap();
    let line = ["--json", "top", "--once", "-I", "20ms"];
    let document = json(&machine.0.as_machine(&line).output().unwrap());
    check(&document);
    assert_eq!(
        row(&document, "processes", "pid", 100)["huge_bytes"],
        Value::Null
    );
    let missing = document["missing"].to_string();
    assert!(missing.contains("CONFIG_PROC_PAGE_MONITOR"), "{missing}");
    assert!(machine.0.path(GROUP).exists());
}

#[test]
fn wrong_usage_is_2() {
    let directory = Directory::empty();
    for wrong in [
        &["-n", "0"][..],
        &["-I", "soon"],
        &["-I", "1ms"],
        &["--once", "-n", "2"],
    ] {
        let line = [&["top"], wrong].concat();
        assert_fails(&directory.run(&line), 2, &[]);
    }
}
