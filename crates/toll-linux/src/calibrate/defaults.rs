// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prices of a machine that nobody has measured: those of one that somebody has
//! (two CPUs of a Zen 4 server, Linux 6.18, as a guest with free page reporting).

use toll_model::cost::{CostTable, FORMAT, Measured, VERSION, WalkPrice};

use super::key;
use crate::{Root, cpu};

pub(super) const MIB: u64 = 1 << 20;

/// ns saved per access by (footprint in MiB, chains 1, 2, 4, 8), with the spread
/// between machines taken as a factor of two to either side.
const SAVED: [(u64, [f64; 4]); 5] = [
    (16, [2.0, 1.5, 1.0, 1.0]),
    (64, [6.0, 4.0, 3.0, 2.0]),
    (256, [20.0, 12.0, 7.0, 5.0]),
    (1024, [50.0, 28.0, 15.0, 9.0]),
    (4096, [125.0, 66.0, 34.0, 18.0]),
];

/// Default prices under this machine's key, marked incomplete.
pub fn default_costs() -> CostTable {
    let key = key(&Root::system());
    CostTable {
        format: FORMAT.to_owned(),
        version: VERSION,
        cpu: key.cpu,
        kernel: key.kernel,
        memory: key.memory,
        complete: false,
        tlb: cpu::tlb_geometry(),
        walk: default_walk(),
        fault_4k: around(1_300.0),
        fault_2m_warm: around(220_000.0),
        fault_2m_cold: around(5_800_000.0),
        collapse: around(5_500_000.0),
        bloat_page: BLOAT_PAGE_NS,
    }
}

/// What one page of memory held for nothing is charged: the price of zeroing a page
/// that somebody else then has to reclaim, about one small fault.
pub(super) const BLOAT_PAGE_NS: f64 = 1_000.0;

/// The default grid.
pub(super) fn default_walk() -> Vec<WalkPrice> {
    let cell = |footprint: u64, chains: u32, saved: f64| WalkPrice {
        footprint: footprint * MIB,
        chains,
        saved_ns: around(saved),
    };
    SAVED
        .iter()
        .flat_map(|(footprint, saved)| {
            [1, 2, 4, 8]
                .into_iter()
                .zip(saved)
                .map(|(chains, ns)| cell(*footprint, chains, *ns))
        })
        .collect()
}

/// A value known to a factor of two.
fn around(median: f64) -> Measured {
    Measured {
        median,
        low: median / 2.0,
        high: median * 2.0,
    }
}
