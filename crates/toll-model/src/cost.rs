// SPDX-License-Identifier: MIT OR Apache-2.0
//! The prices of one machine, as `tollfree calibrate` measures them.

use serde::{Deserialize, Serialize};

/// What stands in the `format` field of a cost table.
pub const FORMAT: &str = "tollfree-costs";
/// The version of the format that this build writes and reads.
pub const VERSION: u32 = 1;

/// A measured value with the range in which it was seen (10th to 90th percentile).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// What one TLB-missing access costs more with 4 KiB than with 2 MiB pages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WalkPrice {
    /// Bytes of memory over which accesses were spread evenly.
    pub footprint: u64,
    /// Independent chains of dependent loads (1 = pointer chasing).
    pub chains: u32,
    /// Nanoseconds saved per access by 2 MiB pages.
    pub saved_ns: Measured,
}

/// One level of a TLB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbLevel {
    pub entries: u32,
    pub ways: u32,
}

/// The data side of a CPU's TLBs. `None`: that level holds no such pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlbGeometry {
    /// Name of the preset, or `cpuid`.
    pub name: String,
    pub l1d_4k: TlbLevel,
    pub l1d_2m: TlbLevel,
    /// Second level for 4 KiB pages.
    pub l2_4k: TlbLevel,
    /// Second level for 2 MiB pages; `l2_shared` says whether it is the same array.
    pub l2_2m: Option<TlbLevel>,
    pub l2_shared: bool,
}

impl TlbGeometry {
    /// Bytes that the second level reaches with 4 KiB pages.
    pub fn reach_4k(&self) -> u64 {
        u64::from(self.l2_4k.entries) * crate::PAGE
    }
}

/// The prices of one machine. All times are nanoseconds of CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CostTable {
    pub format: String,
    pub version: u32,
    /// `model name` of /proc/cpuinfo, kernel release and memory: the table's key.
    pub cpu: String,
    pub kernel: String,
    pub memory: u64,
    /// False where calibration was cut short and defaults stand in.
    pub complete: bool,
    pub tlb: TlbGeometry,
    /// Grid of [`WalkPrice`] over footprint and chains.
    pub walk: Vec<WalkPrice>,
    /// A first touch of 4 KiB.
    pub fault_4k: Measured,
    /// A first touch of 2 MiB whose block was used recently.
    pub fault_2m_warm: Measured,
    /// A first touch of 2 MiB whose block the host must provide (equal to warm where there is no such thing).
    pub fault_2m_cold: Measured,
    /// MADV_COLLAPSE of one populated 2 MiB region.
    pub collapse: Measured,
    /// Price of one 4 KiB page of memory that huge pages hold and the program never touches.
    pub bloat_page: f64,
}
