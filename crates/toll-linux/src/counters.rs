// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of what virtual memory costs: of a process tree, a control group or the machine.
//!
//! [`Counters`] reads a [`Snapshot`]; [`toll_model::losses`] computes counters with estimates from
//! two of them. Everything that a machine does not offer is in the snapshot too, with the reason.
//!
//! | file | reads |
//! |---|---|
//! | `machine` | `/proc/interrupts`, `/proc/stat`, `/proc/meminfo` |
//! | `vmstat` | `/proc/vmstat` |
//! | `sizes` | statistics of each size of huge pages |
//! | `threads` | CPU time of khugepaged, kcompactd and kswapd |
//! | `pressure` | pressure stall information |
//! | `tree` | faults, CPU time and memory of a process and its descendants |
//! | `mapped` | memory of a process in huge pages |
//! | `delays` | delay accounting |
//! | `cgroup` | control groups of version 2 and 1 |
//! | `events`, `pmu`, `tracepoints` | perf events |
//! | [`crate::bpf`] | counts and times by BPF programs |
//! | `live` | the machine, its control groups and all processes, for commands that watch everything |

mod cgroup;
mod delays;
mod events;
mod live;
mod machine;
mod mapped;
mod pmu;
mod pressure;
mod sizes;
mod threads;
mod tracepoints;
mod tree;
mod used;
mod vmstat;

use std::path::Path;
use std::time::Duration;

use thiserror::Error;
use toll_model::losses::{Missing, Scope, Snapshot};

use self::events::Events;
use self::machine::Machine;
use self::tree::Tree;
use self::used::Used;
use crate::Root;
use crate::bpf::{self, Of, Probes};
use crate::proc::{self, Stat};

pub use self::cgroup::Cgroup;
pub use self::live::{Live, Look, Process};
pub use self::mapped::Unread;

/// Ticks of the times in /proc per second (USER_HZ), the same on every x86-64 and arm64 kernel.
const TICKS: u64 = 100;

fn ticks_to_ns(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / TICKS)
}

/// Why something cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Returns the state of a process that has memory of its own.
///
/// # Errors
/// There is no such process, it has ended, it is a thread or a kernel thread.
pub fn living(root: &Root, pid: u32) -> Result<Stat, Refusal> {
    let stat = proc::stat(root, pid).map_err(|_| Refusal(format!("process {pid}: not found")))?;
    if stat.is_kernel_thread {
        let message = "is a kernel thread, without memory of its own (the machine's counters have the CPU time of such threads)";
        return Err(Refusal(format!("process {pid} {message}")));
    }
    let status = proc::status(root, pid);
    if let Some(status) = status.ok().filter(|status| status.tgid != pid) {
        let message = format!("{pid} is a thread of process {}", status.tgid);
        return Err(Refusal(message));
    }
    if stat.state == 'Z' {
        return Err(Refusal(format!("process {pid} has ended")));
    }
    Ok(stat)
}

/// What is watched, besides the machine.
#[derive(Debug)]
enum Subject {
    Machine,
    Cgroup(Cgroup),
    Tree(Box<Tree>),
}

/// What a process and its waited-for children used, as the kernel reports it at the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct FinalUse {
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user: Duration,
    pub system: Duration,
}

/// Reads the counters of a subject and of the machine.
#[derive(Debug)]
pub struct Counters {
    root: Root,
    subject: Subject,
    machine: Machine,
    events: Events,
    /// BPF programs; `None` if another reader has them.
    probes: Option<Result<Probes, Missing>>,
}

impl Counters {
    /// Watches the machine.
    pub fn of_machine(root: &Root) -> Counters {
        let probes = Probes::open(root, &Of::Machine);
        let events = Events::open(root, &events::Subject::Machine, &probes);
        Counters::new(root, Subject::Machine, events, Some(probes))
    }

    /// Watches the machine without BPF programs: the caller has these.
    fn of_machine_without(root: &Root, probes: &Result<Probes, Missing>) -> Counters {
        let events = Events::open(root, &events::Subject::Machine, probes);
        Counters::new(root, Subject::Machine, events, None)
    }

    /// Watches a control group, by its directory or its name.
    ///
    /// # Errors
    /// There is no such group.
    pub fn of_cgroup(root: &Root, name: &Path) -> Result<Counters, Refusal> {
        let cgroup = Cgroup::find(root, name)?;
        let probes = cgroup.probes(root);
        let events = Events::open(root, &events::Subject::Cgroup(&cgroup), &probes);
        let subject = Subject::Cgroup(cgroup);
        Ok(Counters::new(root, subject, events, Some(probes)))
    }

    /// Watches a running process and its descendants.
    ///
    /// # Errors
    /// There is no such process, or it is a kernel thread.
    pub fn of_process(root: &Root, pid: u32) -> Result<Counters, Refusal> {
        let stat = living(root, pid)?;
        let mut tree = Tree::new(pid, Some(stat.start_ticks));
        tree.look(root);
        let probes = Probes::open(root, &Of::Followed);
        if let Ok(probes) = &probes {
            // The programs see what these fork from now on.
            probes.follow(&tree.pids());
            tree.look(root);
            probes.follow(&tree.pids());
        }
        let subject = events::Subject::Processes(tree.pids());
        let events = Events::open(root, &subject, &probes);
        let subject = Subject::Tree(Box::new(tree));
        Ok(Counters::new(root, subject, events, Some(probes)))
    }

    /// Watches the programs that this thread starts from now on, until [`Counters::attach`] names
    /// the one to follow.
    pub fn of_children(root: &Root) -> Counters {
        let probes = Probes::open(root, &Of::Followed);
        if let Ok(probes) = &probes {
            probes.follow_own_forks();
        }
        let events = Events::open(root, &events::Subject::Children, &probes);
        let subject = Subject::Tree(Box::new(Tree::new(0, None)));
        Counters::new(root, subject, events, Some(probes))
    }

    fn new(
        root: &Root,
        subject: Subject,
        events: Events,
        probes: Option<Result<Probes, Missing>>,
    ) -> Counters {
        Counters {
            root: root.clone(),
            subject,
            machine: Machine::default(),
            events,
            probes,
        }
    }

    /// What is watched.
    pub fn scope(&self) -> Scope {
        match self.subject {
            Subject::Machine => Scope::Machine,
            Subject::Cgroup(_) => Scope::Cgroup,
            Subject::Tree(_) => Scope::Tree,
        }
    }

    /// Follows a program that was just started.
    pub fn attach(&mut self, pid: u32) {
        if let Some(Ok(probes)) = &self.probes {
            probes.leave_own_forks();
        }
        if let Subject::Tree(tree) = &mut self.subject {
            let started = proc::stat(&self.root, pid)
                .ok()
                .map(|stat| stat.start_ticks);
            **tree = Tree::new(pid, started);
        }
    }

    /// Sets what the program used in all, once it has ended.
    pub fn end(&mut self, used: FinalUse) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if let Subject::Tree(tree) = &mut self.subject {
            tree.end(Used {
                minor: used.minor_faults,
                major: used.major_faults,
                user: ns(used.user),
                system: ns(used.system),
            });
        }
    }

    /// Whether the process has ended, or the control group was removed.
    pub fn is_over(&self) -> bool {
        match &self.subject {
            Subject::Machine => false,
            Subject::Cgroup(cgroup) => cgroup.is_gone(&self.root),
            Subject::Tree(tree) => tree.is_over(&self.root),
        }
    }

    /// Looks at the processes between two snapshots, so that short-lived ones are counted.
    pub fn look(&mut self) {
        if let Subject::Tree(tree) = &mut self.subject {
            tree.look(&self.root);
            if let Some(Ok(probes)) = &self.probes {
                probes.forget_ended(&self.root);
            }
        }
    }

    /// Reads everything.
    pub fn read(&mut self) -> Snapshot {
        let mut snapshot = self.machine.read(&self.root);
        match &mut self.subject {
            Subject::Machine => {}
            Subject::Cgroup(cgroup) => snapshot.merge(cgroup.read(&self.root)),
            Subject::Tree(tree) => {
                snapshot.merge(tree.read(&self.root));
                tree.forget_largest();
            }
        }
        self.events.read(&mut snapshot);
        if self.events.have_faults() {
            set_all_faults(&mut snapshot);
        }
        self.read_probes(&mut snapshot);
        snapshot
    }

    fn read_probes(&self, snapshot: &mut Snapshot) {
        let scope = self.scope();
        let read = |probes: &Result<Probes, Missing>| match probes {
            Ok(probes) => probes.read(),
            Err(missing) => Err(missing.clone()),
        };
        match self.probes.as_ref().map(read) {
            None => {}
            Some(Ok(sums)) => sums.set(scope, snapshot),
            Some(Err(missing)) => bpf::miss(scope, &missing, snapshot),
        }
    }
}

/// Sets the number of all faults where both kinds were counted by events.
fn set_all_faults(snapshot: &mut Snapshot) {
    let value = |name| snapshot.value(Scope::Tree, name);
    let all = value("page_faults_minor").zip(value("page_faults_major"));
    let all = all.map(|(minor, major)| minor.saturating_add(major));
    let all = all.ok_or_else(|| Missing::without_fix("a kind of faults was not counted"));
    snapshot.set(Scope::Tree, "page_faults", all);
}

#[cfg(test)]
mod tests;
