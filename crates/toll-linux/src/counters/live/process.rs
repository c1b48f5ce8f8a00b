// SPDX-License-Identifier: MIT OR Apache-2.0
//! One process.

use std::sync::Arc;
use std::time::Instant;

use toll_model::PAGE;
use toll_model::losses::{Scope, Snapshot};

use crate::bpf::Counted;
use crate::counters::mapped::{Mapped, Unread};
use crate::counters::threads;
use crate::counters::used::Used;
use crate::proc::Stat;

/// A process at a look. Its counters are totals since its start. They include what children used
/// that ended and were waited for, unless they were seen: a seen child has counters of its own.
#[derive(Debug, Clone)]
pub struct Process {
    pub pid: u32,
    /// Start time in ticks after boot: with the id it identifies a process.
    pub started: u64,
    /// The name, which the process may choose freely.
    pub name: Arc<str>,
    /// Path of its control group; `None` for a thread of the kernel.
    pub cgroup: Option<Arc<str>>,
    /// Its id in its own pid namespace, if that is another one than the reader's.
    pub namespace_pid: Option<u32>,
    /// Bytes in memory.
    pub resident: u64,
    pub(super) parent: u32,
    pub(super) is_kernel_thread: bool,
    /// Whether it ran since the last look.
    pub(super) is_active: bool,
    pub(super) clock: Option<u64>,
    pub(super) own: Used,
    /// What its ended children used, seen ones included.
    pub(super) children: Used,
    /// What its ended children used after they were last seen.
    pub(super) inherited: Used,
    /// What seen children used that ended, and that its counters may get only by the next look.
    pub(super) expected: Used,
    pub(super) mapped: Result<Mapped, Unread>,
    pub(super) mapped_at: Option<Instant>,
    /// What BPF programs counted since they were started.
    pub(super) counted: Option<Counted>,
}

impl Process {
    pub(super) fn new(pid: u32, stat: &Stat) -> Process {
        Process {
            pid,
            started: stat.start_ticks,
            name: stat.name.as_str().into(),
            cgroup: None,
            namespace_pid: None,
            resident: 0,
            parent: 0,
            is_kernel_thread: stat.is_kernel_thread,
            is_active: true,
            clock: None,
            own: Used::default(),
            children: Used::default(),
            inherited: Used::default(),
            expected: Used::default(),
            mapped: Err(Unread::NotYet),
            mapped_at: None,
            counted: None,
        }
    }

    /// Takes the values of a new look. A program that was executed has a new name.
    pub(super) fn update(&mut self, stat: &Stat, clock: Option<u64>) {
        if *self.name != *stat.name {
            self.name = stat.name.as_str().into();
        }
        self.resident = stat.resident_pages.saturating_mul(PAGE);
        self.parent = stat.parent;
        self.is_active = true;
        self.clock = clock;
        self.own = Used::own(stat);
        self.children = Used::by_children(stat);
    }

    /// The same process when it started.
    pub fn at_start(&self) -> Process {
        Process {
            clock: self.clock.map(|_| 0),
            own: Used::default(),
            children: Used::default(),
            inherited: Used::default(),
            mapped: Err(Unread::NotYet),
            counted: self.counted.as_ref().map(Counted::nothing),
            ..self.clone()
        }
    }

    /// Whether it is the same process, and not another one with its id.
    pub fn is(&self, other: &Process) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    /// The counter of its CPU time, for a thread of the kernel that works for memory.
    pub(super) fn thread(&self) -> Option<&'static str> {
        self.is_kernel_thread
            .then(|| threads::counter(&self.name))
            .flatten()
    }

    fn used(&self) -> Used {
        self.own.plus(self.inherited)
    }

    /// CPU time, ns: exact where the clock of the process can be read, or else in ticks.
    pub fn cpu_ns(&self) -> u64 {
        let own = self.clock.unwrap_or(self.own.cpu());
        own.saturating_add(self.inherited.cpu())
    }

    /// Whether [`Process::cpu_ns`] is exact.
    pub fn is_exact(&self) -> bool {
        self.clock.is_some()
    }

    pub fn faults(&self) -> u64 {
        self.used().minor.saturating_add(self.used().major)
    }

    pub fn major_faults(&self) -> u64 {
        self.used().major
    }

    /// TLB shootdowns that it sent since BPF programs count them; `None` if they do not.
    pub fn shootdowns_sent(&self) -> Option<u64> {
        self.counted.as_ref()?.shootdowns().ok()
    }

    /// Bytes in huge pages of any kind.
    ///
    /// # Errors
    /// They were not read.
    pub fn huge(&self) -> Result<u64, Unread> {
        self.mapped.map(|mapped| mapped.huge())
    }

    /// Its counters beside those of the machine at the same time, for [`toll_model::losses`].
    pub fn snapshot(&self, machine: &Snapshot) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let used = self.used();
        let mut set = |name: &str, value| snapshot.set(Scope::Tree, name, Ok(value));
        set("cpu_user", used.user);
        set("cpu_system", used.system);
        match self.thread() {
            Some(counter) => set(counter, used.cpu()),
            None => {
                set("page_faults", used.minor.saturating_add(used.major));
                set("page_faults_minor", used.minor);
                set("page_faults_major", used.major);
                if let Ok(mapped) = self.mapped {
                    set("mapped_huge_anon", mapped.anon);
                }
            }
        }
        if let Some(counted) = &self.counted {
            counted.set(Scope::Tree, &mut snapshot);
        }
        if let Some(faults) = machine.value(Scope::Machine, "thp_fault_alloc") {
            snapshot.set(Scope::Machine, "thp_fault_alloc", Ok(faults));
        }
        snapshot.cpus = machine.cpus;
        snapshot
    }
}
