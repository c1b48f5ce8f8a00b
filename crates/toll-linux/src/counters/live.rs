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
use crate::bpf::{self, Of, Probes};

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
    /// Why BPF programs do not count.
    pub uncounted: Option<Missing>,
}

/// Watches everything.
#[derive(Debug)]
pub struct Live {
    root: Root,
    machine: Counters,
    probes: Result<Probes, Missing>,
    processes: Processes,
    groups: Groups,
}

impl Live {
    pub fn new(root: &Root) -> Live {
        let probes = Probes::open(root, &Of::Processes);
        Live {
            root: root.clone(),
            machine: Counters::of_machine_without(root, &probes),
            probes,
            processes: Processes::new(root),
            groups: Groups::default(),
        }
    }

    pub fn look(&mut self) -> Look {
        // Before the processes are listed: one that is missing then has ended.
        let sums = match &self.probes {
            Ok(probes) => probes.read(),
            Err(missing) => Err(missing.clone()),
        };
        let mut machine = self.machine.read();
        match &sums {
            Ok(sums) => sums.set(Scope::Machine, &mut machine),
            Err(missing) => bpf::miss(Scope::Machine, missing, &mut machine),
        }
        let value = |name| machine.value(Scope::Machine, name);
        let huge = Huge {
            anon: value("mapped_huge_anon").unwrap_or(0),
            has_hugetlb: value("mapped_hugetlb") != Some(0),
        };
        self.processes.look(&self.root, huge);
        if let (Ok(probes), Ok(sums)) = (&mut self.probes, &sums) {
            self.processes.count(sums);
            probes.keep_only(sums, |process| self.processes.has(process));
        }
        self.groups.look(&self.root, self.processes.all());
        Look {
            at: Instant::now(),
            machine,
            groups: self.groups.snapshots(),
            processes: self.processes.shown(),
            hidden: self.processes.hidden(&self.root),
            uncounted: sums.err(),
        }
    }
}

#[cfg(test)]
mod tests;
