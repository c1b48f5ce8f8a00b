// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions between two snapshots.

use std::cmp::Reverse;

use serde::Serialize;
use toll_linux::econ::{Account, Process};

use super::Snapshot;
use crate::cmd::kernel::decisions::Decisions;

/// `tollfree kernel top --json`.
#[derive(Debug, Serialize)]
pub struct Change {
    format: &'static str,
    version: u32,
    /// Time between the two snapshots; `None`: since boot.
    pub interval_ns: Option<u64>,
    pub mode: String,
    pub frozen: bool,
    pub decisions: Vec<Decisions>,
    pub costs: Vec<Number>,
    /// Empty if the kernel does not zero blocks ahead.
    pub zeroed_blocks: Vec<Number>,
    /// The processes with the most requests first.
    pub processes: Vec<Decided>,
}

/// A counter of the kernel, with its increase since the previous snapshot.
#[derive(Debug, Serialize)]
pub struct Number {
    pub name: String,
    pub value: u64,
    pub change: i64,
}

/// The decisions for a process.
#[derive(Debug, Serialize)]
pub struct Decided {
    pub pid: u32,
    pub name: String,
    pub mode: String,
    pub decisions: Vec<Decisions>,
}

impl Change {
    /// Everything since boot.
    pub fn since_boot(now: &Snapshot) -> Change {
        Change::new(None, now)
    }

    pub fn between(before: &Snapshot, now: &Snapshot) -> Change {
        Change::new(Some(before), now)
    }

    fn new(before: Option<&Snapshot>, now: &Snapshot) -> Change {
        let machine = before.map(|look| &look.machine);
        let earlier = |process: &Process| {
            let same = |it: &&Process| (it.pid, it.started) == (process.pid, process.started);
            before?.processes.iter().find(same)
        };
        let mut processes: Vec<Decided> = now
            .processes
            .iter()
            .map(|process| Decided {
                pid: process.pid,
                name: plain(&process.name),
                mode: process.ledger.mode.clone(),
                decisions: decisions(
                    earlier(process).map_or(&[], |it| &it.ledger.accounts),
                    &process.ledger.accounts,
                ),
            })
            .collect();
        processes.sort_by_key(|process| (Reverse(process.all().asked), process.pid));
        Change {
            format: "tollfree-top",
            version: 1,
            interval_ns: before.map(|look| now.at.duration_since(look.at).as_nanos() as u64),
            mode: now.machine.mode.clone(),
            frozen: now.machine.frozen,
            decisions: decisions(
                machine.map_or(&[], |it| &it.accounts),
                &now.machine.accounts,
            ),
            costs: numbers(machine.map_or(&[], |it| &it.costs), &now.machine.costs),
            zeroed_blocks: numbers(machine.map_or(&[], |it| &it.zeroed), &now.machine.zeroed),
            processes,
        }
    }
}

impl Decided {
    /// The sum over all models.
    pub fn all(&self) -> Decisions {
        let mut all = Decisions::default();
        for one in &self.decisions {
            all.asked = all.asked.saturating_add(one.asked);
            all.approved = all.approved.saturating_add(one.approved);
            all.cost_ns = all.cost_ns.saturating_add(one.cost_ns);
            all.benefit_ns = all.benefit_ns.saturating_add(one.benefit_ns);
            all.refused_ns = all.refused_ns.saturating_add(one.refused_ns);
        }
        all
    }
}

/// The decisions since `before`; a model missing there counts from 0.
fn decisions(before: &[Account], now: &[Account]) -> Vec<Decisions> {
    let change = |account: &Account| {
        let earlier = before.iter().find(|it| it.model == account.model);
        let since = |of: fn(&Account) -> u64| of(account).saturating_sub(earlier.map_or(0, of));
        Decisions {
            model: account.model.clone(),
            asked: since(|it| it.asked),
            approved: since(|it| it.approved),
            cost_ns: since(|it| it.cost_ns),
            benefit_ns: since(|it| it.benefit_ns),
            refused_ns: since(|it| it.refused_ns),
        }
    };
    now.iter().map(change).collect()
}

fn numbers(before: &[(String, u64)], now: &[(String, u64)]) -> Vec<Number> {
    let number = |(name, value): &(String, u64)| {
        let earlier = before
            .iter()
            .find(|it| it.0 == *name)
            .map_or(*value, |it| it.1);
        Number {
            name: name.clone(),
            value: *value,
            change: value.wrapping_sub(earlier) as i64,
        }
    };
    now.iter().map(number).collect()
}

/// Replaces control characters: a process chooses its own name.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
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
}
