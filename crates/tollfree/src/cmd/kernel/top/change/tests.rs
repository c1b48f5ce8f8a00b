// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::{Duration, Instant};

use toll_linux::econ::{Ledger, Machine};

use super::*;

fn account(asked: u64) -> Account {
    Account {
        model: "huge".to_owned(),
        asked,
        approved: asked / 2,
        cost_ns: asked * 10,
        benefit_ns: asked * 100,
        refused_ns: asked * 1000,
    }
}

fn process(pid: u32, started: u64, asked: u64) -> Process {
    Process {
        pid,
        started,
        name: format!("p\x1b[2J{pid}"),
        ledger: Ledger {
            mode: "default".to_owned(),
            accounts: vec![account(asked)],
        },
    }
}

fn look(at: Instant, asked: u64, processes: Vec<Process>) -> Snapshot {
    Snapshot {
        at,
        machine: Machine {
            mode: "on".to_owned(),
            costs: vec![("fault".to_owned(), 1300 - asked)],
            accounts: vec![account(asked)],
            ..Machine::default()
        },
        processes,
    }
}

#[test]
fn the_first_look_has_all_and_later_ones_what_is_new() {
    let begun = Instant::now();
    let one = look(begun, 10, vec![process(1, 5, 10), process(2, 5, 30)]);
    let two = look(
        begun + Duration::from_secs(2),
        14,
        vec![process(1, 5, 25), process(2, 5, 31)],
    );
    let all = Change::since_boot(&one);
    assert_eq!((all.interval_ns, all.decisions[0].asked), (None, 10));
    assert_eq!(
        all.processes.iter().map(|it| it.pid).collect::<Vec<_>>(),
        [2, 1]
    );
    let new = Change::between(&one, &two);
    assert_eq!(new.interval_ns, Some(2_000_000_000));
    assert_eq!((new.decisions[0].asked, new.decisions[0].approved), (4, 2));
    assert_eq!((new.costs[0].value, new.costs[0].change), (1286, -4));
    // The other process had the most requests in this interval.
    assert_eq!(
        new.processes.iter().map(|it| it.pid).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(new.processes[0].all().benefit_ns, 1500);
}

#[test]
fn another_process_with_the_id_of_one_that_has_ended_counts_from_0() {
    let begun = Instant::now();
    let one = look(begun, 0, vec![process(1, 5, 100), process(2, 5, 1)]);
    let two = look(begun, 0, vec![process(1, 9, 3)]);
    let new = Change::between(&one, &two);
    assert_eq!(new.processes.len(), 1);
    assert_eq!(new.processes[0].decisions[0].asked, 3);
}

#[test]
fn no_name_speaks_to_the_terminal() {
    let look = look(Instant::now(), 0, vec![process(1, 5, 1)]);
    assert_eq!(Change::since_boot(&look).processes[0].name, "p?[2J1");
}
