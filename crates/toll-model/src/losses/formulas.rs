// SPDX-License-Identifier: MIT OR Apache-2.0
//! The estimate for each counter. `docs/guide/stat.md` explains each formula.

use super::{Change, Counter, EventCosts, Loss, Scope, definition};
use crate::REGION;
use crate::cost::Measured;

/// Time that a counter of the scheduler may be off by: a tick of 10 ms (USER_HZ).
const TICK: f64 = 1e7;
/// Timed faults from which their mean is used.
const FEWEST_TIMED: f64 = 30.0;
/// Unit of the squared times, ns.
const SQUARED_UNIT: f64 = 64.0;
/// Standard errors from the 10th to the 50th percentile.
const Z_80: f64 = 1.2816;

/// Returns the CPU time lost to what a counter counted; `None` if it has no cost of its own. No loss
/// exceeds the time of its scope in that mode: page walks are counted in user mode, and all other
/// events take time in the kernel.
pub(super) fn loss(change: &Change, name: &str, value: f64, costs: &EventCosts) -> Option<Loss> {
    let loss = match name {
        "page_walk_cycles" => upper_bound(walk_time(change, value)?),
        "dtlb_misses" | "itlb_misses" => misses(change, value, costs)?,
        "page_faults_minor" => {
            timed_faults(change, value).unwrap_or_else(|| minor_faults(change, value, costs))
        }
        "page_faults_major" => each(value, &costs.fault_major),
        "tlb_shootdowns_received" => received(change, value, costs),
        "tlb_shootdowns_sent" => each(value, &costs.shootdown_sent),
        // Their time was measured.
        "direct_compactions" if change.of("delay_compaction").is_some() => return None,
        "direct_reclaimed_pages" if change.of("delay_reclaim").is_some() => return None,
        "direct_compactions" => each(value, &costs.compaction),
        "direct_reclaimed_pages" => each(value, &costs.reclaim_page),
        "delay_compaction" | "delay_reclaim" => upper_bound(value),
        "cpu_khugepaged" | "cpu_kcompactd" | "cpu_kswapd" => of_ticks(value),
        _ => return None,
    };
    let mode = match name {
        "page_walk_cycles" | "dtlb_misses" | "itlb_misses" => "cpu_user",
        _ => "cpu_system",
    };
    Some(match change.of(mode) {
        Some(most) => limited(loss, most),
        None => loss,
    })
}

fn each(number: f64, cost: &Measured) -> Loss {
    Loss {
        ns: number * cost.median,
        low: number * cost.low,
        high: number * cost.high,
    }
}

/// A time that was lost at most: a part of it was hidden behind other work, or was a wait.
fn upper_bound(ns: f64) -> Loss {
    Loss {
        ns,
        low: 0.0,
        high: ns,
    }
}

/// CPU time that the kernel counts in ticks.
fn of_ticks(ns: f64) -> Loss {
    Loss {
        ns,
        low: (ns - TICK).max(0.0),
        high: ns + TICK,
    }
}

fn limited(loss: Loss, most: f64) -> Loss {
    let most = most + TICK;
    Loss {
        ns: loss.ns.min(most),
        low: loss.low.min(most),
        high: loss.high.min(most),
    }
}

/// User time in page walks: their share of the cycles.
fn walk_time(change: &Change, walk_cycles: f64) -> Option<f64> {
    let cycles = change.of("cycles").filter(|cycles| *cycles > 0.0)?;
    Some((walk_cycles / cycles).min(1.0) * change.of("cpu_user")?)
}

/// TLB misses by their cost, where the CPU does not count the cycles of page walks.
fn misses(change: &Change, value: f64, costs: &EventCosts) -> Option<Loss> {
    match change.of("page_walk_cycles") {
        Some(_) => None,
        None => Some(each(value, &costs.walk)),
    }
}

/// Minor faults by the mean of those that were timed, with an 80 % interval of that mean. Faults that
/// lost the CPU may have slept: their time is in the upper bound alone. `None` if too few were timed.
fn timed_faults(change: &Change, minor: f64) -> Option<Loss> {
    let timed = change.of("faults_timed")?;
    if timed < FEWEST_TIMED {
        return None;
    }
    let mean = change.of("fault_time")? / timed;
    let squares = change.of("fault_time_squares")? * SQUARED_UNIT * SQUARED_UNIT;
    let deviation = (squares / timed - mean * mean).max(0.0).sqrt();
    let error = Z_80 * deviation / timed.sqrt();
    let slept = change.of("fault_time_slept").unwrap_or(0.0) / timed;
    Some(Loss {
        ns: minor * mean,
        low: minor * (mean - error).max(0.0),
        high: minor * (mean + error + slept),
    })
}

/// Minor faults: those that allocated a huge page, and the others.
fn minor_faults(change: &Change, minor: f64, costs: &EventCosts) -> Loss {
    let (likely, most) = huge_faults(change, minor);
    let small = each(minor - likely, &costs.fault_4k);
    let huge = each(likely, &costs.fault_2m_warm);
    Loss {
        ns: small.ns + huge.ns,
        low: small.low + huge.low,
        high: each(minor - most, &costs.fault_4k).high + most * costs.fault_2m_cold.high,
    }
}

/// The minor faults that allocated a huge page: the likely number and the largest. The kernel counts
/// them for the machine and for control groups; for a process, its huge-page-backed memory shows
/// them, and the machine's number is an upper bound.
fn huge_faults(change: &Change, minor: f64) -> (f64, f64) {
    if let Some(counted) = change.of("thp_fault_alloc") {
        let counted = counted.min(minor);
        return (counted, counted);
    }
    let level = |snapshot: &super::Snapshot| snapshot.value(change.scope, "mapped_huge_anon");
    let grown = match (level(change.before), level(change.after)) {
        (before, Some(after)) => after.saturating_sub(before.unwrap_or(0)),
        _ => 0,
    };
    let seen = (grown / REGION) as f64;
    let machine = change.of_scope(Scope::Machine, "thp_fault_alloc");
    let most = machine.map_or(seen, |all| all.max(seen)).min(minor);
    (seen.min(most), most)
}

/// Interrupts received, and the wait of their senders where the kernel does not count those: one
/// shootdown interrupts at least one CPU, and at most all others.
fn received(change: &Change, value: f64, costs: &EventCosts) -> Loss {
    let received = each(value, &costs.shootdown_received);
    if change.of("tlb_shootdowns_sent").is_some() {
        return received;
    }
    let others = (change.after.cpus.max(2) - 1) as f64;
    let fewest = value / others;
    // The geometric middle of both bounds.
    let likely = (value * fewest).sqrt();
    Loss {
        ns: received.ns + likely * costs.shootdown_sent.median,
        low: received.low + fewest * costs.shootdown_sent.low,
        high: received.high + value * costs.shootdown_sent.high,
    }
}

/// Returns the counters that are ratios of others.
pub(super) fn ratios(change: &Change) -> Vec<Counter> {
    [
        ("page_walk_share", "page_walk_cycles", "cycles", 1.0),
        (
            "dtlb_misses_per_1000_instructions",
            "dtlb_misses",
            "instructions",
            1000.0,
        ),
        (
            "itlb_misses_per_1000_instructions",
            "itlb_misses",
            "instructions",
            1000.0,
        ),
    ]
    .into_iter()
    .filter_map(|(name, of, base, factor)| {
        let base = change.of(base).filter(|base| *base > 0.0)?;
        Some(Counter {
            name: name.to_owned(),
            definition: definition(name)?,
            scope: change.scope,
            value: Some(change.of(of)? / base * factor),
            loss: None,
            missing: None,
            counted: None,
            by_cpu: Vec::new(),
            source: None,
        })
    })
    .collect()
}
