// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_testkit::Directory;

use super::*;

#[test]
fn a_tracepoint_is_found_in_either_place() {
    let machine = Directory::empty();
    let root = Root::at(machine.as_path());
    let shootdowns = &ALL[0];
    let reason = shootdowns.event(&root).unwrap_err().reason;
    assert!(reason.contains("tracepoint tlb:tlb_flush"), "{reason}");
    machine.write("sys/kernel/debug/tracing/events/tlb/tlb_flush/id", "41\n");
    assert_eq!(shootdowns.event(&root).unwrap().config, 41);
    machine.write("sys/kernel/tracing/events/tlb/tlb_flush/id", "42\n");
    let event = shootdowns.event(&root).unwrap();
    assert_eq!((event.kind, event.config), (KIND, 42));
}

#[test]
fn what_the_kernel_counts_for_the_machine_needs_no_tracepoint() {
    let machine = Directory::with(&[("proc/vmstat", "nr_tlb_remote_flush_received 3\n")]);
    let root = Root::at(machine.as_path());
    let counters = |scope| -> Vec<&str> {
        let all = of(&root, scope).into_iter();
        all.map(|tracepoint| tracepoint.counter).collect()
    };
    assert_eq!(counters(Scope::Machine), ["tlb_shootdowns_sent"]);
    let all = [
        "tlb_shootdowns_sent",
        "direct_reclaims",
        "direct_compactions",
    ];
    assert_eq!(counters(Scope::Tree), all);
    assert_eq!(counters(Scope::Cgroup), all);
    machine.write("proc/vmstat", "nr_tlb_remote_flush 1\n");
    assert!(counters(Scope::Machine).is_empty());
}
