// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of profiles: one file each.

pub mod perf;
pub mod refs;
pub mod sim;

/// Which source to record with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SourceChoice {
    /// perf if this CPU gives data addresses, else the simulator if it is quick enough, else refs
    Auto,
    /// Samples of memory accesses by the CPU (perf mem)
    Perf,
    /// The simulator (qemu-user with the TLB plugin)
    Sim,
    /// Referenced bits of the page tables
    Refs,
}
