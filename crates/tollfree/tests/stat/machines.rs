// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole machine, and machines that offer little.

use std::fs;

use serde_json::Value;
use toll_testkit::Directory;
use toll_testkit::output::{stderr, stdout, succeeds};
use toll_testkit::process::{Running, interrupt};

use crate::{check, counter, heeding_ctrl_c, report, value};

#[test]
fn this_machine_is_counted() {
    let directory = Directory::empty();
    let report = report(&directory.run(&["--json", "stat", "-a", "--for", "300ms"]));
    assert_eq!(report["subject"], "machine");
    assert_eq!(report["scope"], "machine");
    assert!(value(&report, "machine", "page_faults") >= 0.0);
    let received = counter(&report, "machine", "tlb_shootdowns_received");
    if let Some(by_cpu) = received["by_cpu"].as_array() {
        let sum: f64 = by_cpu.iter().map(|number| number.as_f64().unwrap()).sum();
        assert_eq!(received["value"].as_f64(), Some(sum));
    }
}

#[test]
fn ctrl_c_ends_it_with_a_report() {
    let directory = Directory::empty();
    let mut stat = directory.tollfree(&["--json", "stat", "-a", "-I", "50ms"]);
    let mut stat = Running::start(heeding_ctrl_c(&mut stat));
    let first: Value = serde_json::from_str(&stat.line()).unwrap();
    check(&first);
    interrupt(stat.pid());
    assert!(stat.child.wait().unwrap().success());
}

/// Without files, everything is missing with its reason; with some, the rest.
#[test]
fn a_machine_with_nothing_explains_itself() {
    let machine = Directory::empty();
    let line = ["--json", "stat", "-a", "--for", "20ms"];
    let nothing = report(&machine.as_machine(&line).output().unwrap());
    assert_eq!(nothing["loss_ns"], Value::Null);
    for counter in nothing["counters"].as_array().unwrap() {
        assert!(counter["why_missing"].is_string(), "{counter}");
    }
    machine.write("proc/vmstat", "pgfault 7\npgmajfault 2\n");
    let some = report(&machine.as_machine(&line).output().unwrap());
    assert_eq!(value(&some, "machine", "page_faults_minor"), 0.0);
    let text = succeeds(&machine.as_machine(&line[1..]).output().unwrap());
    assert!(text.contains("not measurable here"), "{text}");
    assert!(text.contains("CONFIG_DEBUG_TLBFLUSH"), "{text}");
}

/// The change of an interval is the difference of two reads.
#[test]
fn an_interval_has_the_events_of_its_time() {
    let machine = Directory::empty();
    let vmstat = |faults: u64| {
        let text = format!("pgfault {faults}\npgmajfault 10\nthp_fault_alloc 3\n");
        let new = machine.write("proc/vmstat.new", text);
        fs::rename(new, machine.path("proc/vmstat")).unwrap();
    };
    vmstat(1_000);
    let mut stat = machine.as_machine(&["--json", "stat", "-a", "-I", "20ms"]);
    let mut stat = Running::start(&mut stat);
    let line = |stat: &mut Running| -> Value { serde_json::from_str(&stat.line()).unwrap() };
    assert_eq!(value(&line(&mut stat), "machine", "page_faults"), 0.0);
    vmstat(1_500);
    let next = loop {
        let next = line(&mut stat);
        if value(&next, "machine", "page_faults") > 0.0 {
            break next;
        }
    };
    check(&next);
    assert_eq!(value(&next, "machine", "page_faults_minor"), 500.0);
    let loss = counter(&next, "machine", "page_faults_minor");
    assert!(loss["loss_ns"].as_f64().unwrap() > 0.0, "{loss}");
    assert_eq!(value(&line(&mut stat), "machine", "page_faults"), 0.0);
}

/// A container with a private /proc that holds only processes, and no /sys.
#[test]
fn a_container_with_little_of_proc_says_what_it_lacks() {
    let directory = Directory::empty();
    let line = "mount -t tmpfs none /sys && \
        for file in vmstat interrupts pressure/memory; do mount --bind /dev/null /proc/$file; done
        $TOLLFREE --json stat -o out -- sh -c 'exit 4'; echo $?";
    let Some(output) = directory.in_own_mounts(line) else {
        return;
    };
    assert_eq!(stdout(&output), "4\n", "{}", stderr(&output));
    let report = directory.json("out");
    check(&report);
    assert!(value(&report, "process tree", "page_faults_minor") > 0.0);
    for name in [
        "page_faults",
        "tlb_shootdowns_received",
        "pressure_some",
        "mthp",
    ] {
        let counter = counter(&report, "machine", name);
        assert!(counter["why_missing"].is_string(), "{counter}");
    }
}
