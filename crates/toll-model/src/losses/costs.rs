// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of each event.

use crate::cost::{CostTable, Measured};

/// CPU time per event, in ns.
#[derive(Debug, Clone, PartialEq)]
pub struct EventCosts {
    pub fault_4k: Measured,
    pub fault_2m_warm: Measured,
    pub fault_2m_cold: Measured,
    pub fault_major: Measured,
    pub shootdown_sent: Measured,
    pub shootdown_received: Measured,
    pub reclaim_page: Measured,
    pub compaction: Measured,
    /// A TLB miss with a page walk.
    pub walk: Measured,
    /// Names of the costs that were not measured on this machine.
    pub defaults: Vec<&'static str>,
}

const fn range(low: f64, median: f64, high: f64) -> Measured {
    Measured { median, low, high }
}

/// Assumed, with a margin of about 4 in either direction: hardware, the number of CPUs and
/// mitigations change each of them.
const FAULT_MAJOR: Measured = range(2_000.0, 8_000.0, 40_000.0);
const SHOOTDOWN_SENT: Measured = range(500.0, 2_500.0, 12_000.0);
const SHOOTDOWN_RECEIVED: Measured = range(300.0, 1_500.0, 8_000.0);
const RECLAIM_PAGE: Measured = range(150.0, 600.0, 3_000.0);
/// User space cannot cause one direct compaction alone, so it is never measured. Between a scan that
/// gives up at once and one that migrates a block's 512 pages.
const COMPACTION: Measured = range(5_000.0, 200_000.0, 5_000_000.0);

impl EventCosts {
    /// Returns the costs of a table; costs that it lacks are defaults.
    pub fn of(table: &CostTable) -> EventCosts {
        let mut defaults = vec!["compaction"];
        if !table.complete {
            defaults.push("a part of faults and page walks");
        }
        let events = &table.events;
        let mut or_default = |name, measured: Option<Measured>, default| {
            measured.unwrap_or_else(|| {
                defaults.push(name);
                default
            })
        };
        let fault_major = or_default("major faults", events.fault_major, FAULT_MAJOR);
        let shootdown_sent = or_default("shootdowns", events.shootdown_sent, SHOOTDOWN_SENT);
        let shootdown_received = or_default(
            "shootdowns received",
            events.shootdown_received,
            SHOOTDOWN_RECEIVED,
        );
        let reclaim_page = or_default("reclaim", events.reclaim_page, RECLAIM_PAGE);
        EventCosts {
            fault_4k: table.fault_4k,
            fault_2m_warm: table.fault_2m_warm,
            fault_2m_cold: table.fault_2m_cold,
            fault_major,
            shootdown_sent,
            shootdown_received,
            reclaim_page,
            compaction: COMPACTION,
            walk: walk(table),
            defaults,
        }
    }
}

/// The range of a page walk over all footprints beyond the TLB's reach and all numbers of chains,
/// with its middle; the counters do not tell which of them a program resembles.
fn walk(table: &CostTable) -> Measured {
    let beyond = table
        .walk
        .iter()
        .filter(|cell| cell.footprint > table.tlb.reach_4k());
    let mut costs: Vec<f64> = beyond.map(|cell| cell.saved_ns.median.max(0.0)).collect();
    costs.sort_by(f64::total_cmp);
    match (costs.first(), costs.get(costs.len() / 2), costs.last()) {
        (Some(low), Some(median), Some(high)) => range(*low, *median, *high),
        _ => range(0.0, 10.0, 200.0),
    }
}
