// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine, its control groups and all processes at one moment, for commands that watch
//! everything.
//!
//! It has to be cheap beside thousands of processes. The CPU clock of a process tells in 0.3 us
//! whether it ran since the last look; only then its files are read.
//!
//! | file | does |
//! |---|---|
//! | `process` | one process: its counters |
//! | `processes` | looks at all processes |
//! | `heirs` | finds what short-lived processes used |
//! | `clock` | the CPU clock of a process |
//! | `rollups` | the memory in huge pages, within a budget |
//! | `groups` | the control groups of the processes |

mod clock;
mod groups;
mod heirs;
mod process;
mod processes;
mod rollups;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use toll_model::losses::{Missing, Scope, Snapshot};

use self::groups::Groups;
use self::processes::Processes;
use self::rollups::Huge;
use super::Counters;
use crate::Root;

pub use self::process::Process;

/// Everything at one moment. All counters are totals.
#[derive(Debug, Clone)]
pub struct Look {
    pub at: Instant,
    pub machine: Snapshot,
    /// Control groups that have processes and counters of their own, by path.
    pub groups: BTreeMap<Arc<str>, Arc<Snapshot>>,
    /// Processes by id, and those threads of the kernel that work for memory.
    pub processes: BTreeMap<u32, Process>,
    /// Why other processes are not visible.
    pub hidden: Option<Missing>,
}

/// Watches everything.
#[derive(Debug)]
pub struct Live {
    root: Root,
    machine: Counters,
    processes: Processes,
    groups: Groups,
}

impl Live {
    pub fn new(root: &Root) -> Live {
        Live {
            root: root.clone(),
            machine: Counters::of_machine(root),
            processes: Processes::new(root),
            groups: Groups::default(),
        }
    }

    pub fn look(&mut self) -> Look {
        let machine = self.machine.read();
        let value = |name| machine.value(Scope::Machine, name);
        let huge = Huge {
            anon: value("mapped_huge_anon").unwrap_or(0),
            has_hugetlb: value("mapped_hugetlb") != Some(0),
        };
        self.processes.look(&self.root, huge);
        self.groups.look(&self.root, self.processes.all());
        Look {
            at: Instant::now(),
            machine,
            groups: self.groups.snapshots(),
            processes: self.processes.shown(),
            hidden: self.processes.hidden(&self.root),
        }
    }
}

#[cfg(test)]
mod tests;
