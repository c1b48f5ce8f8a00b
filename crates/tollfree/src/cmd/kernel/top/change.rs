// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decisions between two snapshots.

use std::cmp::Reverse;

use serde::Serialize;
use toll_linux::econ::{Account, Process};

use super::Snapshot;
use crate::terminal::plain;

/// `tollfree kernel top --json`.
#[derive(Debug, Serialize)]
pub struct Change {
    format: &'static str,
    version: u32,
    /// Time between the two snapshots; `None`: since boot.
    pub interval_ns: Option<u64>,
    pub mode: String,
    pub frozen: bool,
    pub decisions: Vec<Account>,
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
    pub decisions: Vec<Account>,
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
            format: "tollfree-kernel-top",
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
    pub fn all(&self) -> Account {
        let mut all = Account::default();
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
fn decisions(before: &[Account], now: &[Account]) -> Vec<Account> {
    let change = |account: &Account| {
        let earlier = before.iter().find(|it| it.model == account.model);
        let since = |of: fn(&Account) -> u64| of(account).saturating_sub(earlier.map_or(0, of));
        Account {
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

#[cfg(test)]
mod tests;
