// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configuration of an emulated machine.

use serde::{Deserialize, Serialize};

/// Configuration of the emulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Number of CPUs, 1 to 8.
    pub cpus: u32,
    /// Memory of node 0, MiB; of both nodes together if `nodes` is 2.
    pub memory_mib: u32,
    /// Number of nodes: 1, or 2 that share CPUs and memory equally.
    #[serde(default = "one")]
    pub nodes: u32,
    /// Memory of an additional slower node without CPUs, MiB; 0: no such node.
    #[serde(default)]
    pub slow_mib: u32,
    /// Size of persistent memory (/dev/pmem0, with DAX), MiB; 0: none.
    #[serde(default)]
    pub pmem_mib: u32,
    /// An IOMMU with first-stage tables, and QEMU's device `edu`, which copies by DMA.
    #[serde(default)]
    pub iommu: bool,
    /// One host thread runs all CPUs with an instruction-count clock: slower, and counts repeat.
    #[serde(default)]
    pub icount: bool,
    /// With `icount`: each CPU has a turn within this time of the guest's clock, microseconds; 0:
    /// CPUs run in turn until the next timer of the guest, up to 4 ms together.
    #[serde(default)]
    pub turns_us: u32,
    /// Enables page-table isolation.
    #[serde(default)]
    pub pti: bool,
    /// The kernel emulates PCIDs in software (lab-only seams); only for variants with that seam.
    #[serde(default = "yes")]
    pub pcid: bool,
    /// Enables five levels of page tables. Not for scenarios: the virtual PMU walks four levels.
    #[serde(skip)]
    pub la57: bool,
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

impl Machine {
    /// A single-node machine with defaults.
    pub fn plain(cpus: u32, memory_mib: u32) -> Machine {
        Machine {
            cpus,
            memory_mib,
            nodes: 1,
            slow_mib: 0,
            pmem_mib: 0,
            iommu: false,
            icount: false,
            turns_us: 0,
            pti: false,
            pcid: true,
            la57: false,
        }
    }

    /// Returns what is invalid about the configuration, if anything.
    pub fn problem(&self) -> Option<String> {
        let total = u64::from(self.memory_mib) + u64::from(self.slow_mib);
        match self {
            Machine { cpus: 0 | 9.., .. } => Some(format!("{} CPUs: must be 1 to 8", self.cpus)),
            Machine { nodes: 0 | 3.., .. } => Some(format!("{} nodes: must be 1 or 2", self.nodes)),
            Machine {
                nodes: 2, cpus: 1, ..
            } => Some("2 nodes need 2 CPUs".to_owned()),
            _ if self.memory_mib < 128 => Some(format!(
                "{} MiB of memory: the minimum is 128",
                self.memory_mib
            )),
            _ if self.turns_us > 0 && !self.icount => {
                Some("turns_us: needs icount, otherwise CPUs do not run in turn".to_owned())
            }
            _ if total > 12 * 1024 => Some(format!("{total} MiB of memory: the maximum is 12288")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
