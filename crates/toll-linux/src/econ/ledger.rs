// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decisions of the estimator's models, of the machine and of processes.

use serde::Serialize;

use super::DIRECTORY;
use super::costs::{costs, numbers};
use crate::{Root, proc};

/// Decisions of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// huge, large, direct, promote, demote, compact, zero, pool, swap.
    pub model: String,
    pub asked: u64,
    /// Number of approvals, their estimated cost and benefit, and the benefit of the rejected ones,
    /// ns.
    pub approved: u64,
    pub cost_ns: u64,
    pub benefit_ns: u64,
    pub refused_ns: u64,
}

/// Decisions for a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// off, observe, on, or default: the machine's mode.
    pub mode: String,
    pub accounts: Vec<Account>,
}

impl Ledger {
    /// Returns the ledger of a process; `None` if the kernel has no econ, there is no such process,
    /// it belongs to another user, or it has no profile.
    pub fn read(root: &Root, pid: u32) -> Option<Ledger> {
        Ledger::parse(&root.read(format!("/proc/{pid}/mm_ledger")).ok()?)
    }

    fn parse(text: &str) -> Option<Ledger> {
        let mut lines = text.lines();
        let mode = lines.next()?.strip_prefix("mode ")?.to_owned();
        let accounts = lines.filter_map(account).collect();
        Some(Ledger { mode, accounts })
    }
}

fn account(line: &str) -> Option<Account> {
    let mut words = line.split(' ');
    let model = words.next()?.to_owned();
    let mut number = || words.next()?.parse().ok();
    Some(Account {
        model,
        asked: number()?,
        approved: number()?,
        cost_ns: number()?,
        benefit_ns: number()?,
        refused_ns: number()?,
    })
}

/// Machine-wide state of the estimator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// off, observe or on.
    pub mode: String,
    /// Whether the costs are frozen.
    pub frozen: bool,
    /// Costs by file name, ns.
    pub costs: Vec<(String, u64)>,
    pub accounts: Vec<Account>,
    /// Counters of the prezero thread by file name; empty if this kernel has none.
    pub zeroed: Vec<(String, u64)>,
}

impl Machine {
    /// Reads the state; `None` if the kernel has no econ.
    pub fn read(root: &Root) -> Option<Machine> {
        let mode = root.line(format!("{DIRECTORY}/mode"))?;
        let stats = format!("{DIRECTORY}/stats");
        let account_of =
            |model: &String| account_file(model, &root.read(format!("{stats}/{model}")).ok()?);
        let mut accounts: Vec<Account> = root.names(&stats).iter().filter_map(account_of).collect();
        accounts.sort_by_key(|account| place(&account.model));
        Some(Machine {
            mode,
            frozen: root.number(format!("{DIRECTORY}/costs/frozen")) == Some(1),
            costs: costs(root),
            accounts,
            zeroed: numbers(root, &format!("{DIRECTORY}/zeroed_blocks")),
        })
    }
}

/// Sorts in the order of `mm_ledger`; unknown models come last.
fn place(model: &str) -> usize {
    const MODELS: [&str; 9] = [
        "huge", "large", "direct", "promote", "demote", "compact", "zero", "pool", "swap",
    ];
    let known = MODELS.iter().position(|name| *name == model);
    known.unwrap_or(MODELS.len())
}

/// Parses a file of `stats`: five lines, each a name and a number.
fn account_file(model: &str, text: &str) -> Option<Account> {
    let number = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    };
    Some(Account {
        model: model.to_owned(),
        asked: number("asked")?,
        // Kernels before the rename call it "gone".
        approved: number("approved").or_else(|| number("gone"))?,
        cost_ns: number("cost_ns")?,
        benefit_ns: number("benefit_ns")?,
        refused_ns: number("refused_ns")?,
    })
}

/// A process that has a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Start time: distinguishes the process from a later one with the same id.
    pub started: u64,
    pub name: String,
    pub ledger: Ledger,
}

/// Returns all readable processes with a profile. Processes that end meanwhile are left out.
pub fn processes(root: &Root) -> Vec<Process> {
    let process = |pid: u32| {
        let ledger = Ledger::read(root, pid)?;
        Some(Process {
            pid,
            started: proc::stat(root, pid).ok()?.start_ticks,
            name: root.line(format!("/proc/{pid}/comm"))?,
            ledger,
        })
    };
    proc::processes(root)
        .into_iter()
        .filter_map(process)
        .collect()
}

#[cfg(test)]
mod tests;
