// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the programs in the kernel and this reader share: `bpf/abi.h`.

/// For what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Mode {
    Machine,
    Processes,
    Cgroup,
    Followed,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// Interrupts were sent to flush the TLBs of other CPUs.
    Shootdown,
    /// A sampled minor fault that kept the CPU.
    Fault,
    /// One that lost the CPU meanwhile.
    FaultSlept,
    Reclaim,
    Compaction,
}

const EVENTS: usize = 5;

/// State of a followed process: only the processes that it forks are counted, or it is too.
pub(super) const FORKS: u32 = 1;
pub(super) const ALL: u32 = 2;

/// Each process has a sum for each CPU. In a mode with one sum the process is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Key {
    pub process: u32,
    pub cpu: u32,
}

/// Events of a kind, and the time in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Sum {
    pub count: u64,
    pub ns: u64,
}

/// The sums of all events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Totals {
    sums: [Sum; EVENTS],
    /// Sum of the squares of the times of faults that kept the CPU, in (64 ns)².
    pub fault_squares: u64,
}

impl Totals {
    pub(crate) fn of(&self, event: Event) -> Sum {
        self.sums[event as usize]
    }

    pub(crate) fn add(&mut self, other: &Totals) {
        for (sum, other) in self.sums.iter_mut().zip(other.sums) {
            sum.count = sum.count.saturating_add(other.count);
            sum.ns = sum.ns.saturating_add(other.ns);
        }
        self.fault_squares = self.fault_squares.saturating_add(other.fault_squares);
    }

    /// With an event more, for tests.
    #[cfg(test)]
    pub(crate) fn with(mut self, event: Event, count: u64, ns: u64) -> Totals {
        self.sums[event as usize] = Sum { count, ns };
        self
    }
}
