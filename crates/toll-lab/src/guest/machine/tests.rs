// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_machine_that_cannot_be_is_named() {
    let plain = Machine::plain(2, 512);
    assert_eq!(plain.problem(), None);
    let says = |machine: Machine| machine.problem().unwrap_or_default();
    assert!(says(Machine { cpus: 9, ..plain }).contains("9 CPUs"));
    assert!(says(Machine { nodes: 3, ..plain }).contains("3 nodes"));
    let lonely = Machine {
        cpus: 1,
        nodes: 2,
        ..plain
    };
    assert!(says(lonely).contains("2 CPUs"));
    let turns = Machine {
        turns_us: 50,
        ..plain
    };
    assert!(says(turns).contains("needs icount"));
    let slow_mib = 12 * 1024;
    assert!(says(Machine { slow_mib, ..plain }).contains("12800 MiB"));
}
