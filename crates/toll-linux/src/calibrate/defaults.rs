// SPDX-License-Identifier: MIT OR Apache-2.0
//! Default values for costs that were not measured.

use toll_model::cost::{CostTable, Measured, WalkCost};

use super::cache::key;
use super::clock::summary;
use crate::{Root, cpu};

/// Returns default costs with this machine's key, marked incomplete.
pub fn default_costs() -> CostTable {
    let key = key(&Root::system());
    CostTable::default_for(&key.cpu, &key.kernel, key.memory, cpu::tlb_geometry())
}

/// Returns the measured cells, followed beyond the largest measured footprint by the default ones,
/// scaled by the median ratio of measured to default in cells that have both.
pub(super) fn fill_in(mut measured: Vec<WalkCost>, defaults: &[WalkCost]) -> Vec<WalkCost> {
    let ratio = |default: &WalkCost| {
        let cell = measured
            .iter()
            .find(|cell| (cell.footprint, cell.chains) == (default.footprint, default.chains))?;
        Some(cell.saved_ns.median / default.saved_ns.median)
    };
    let ratios: Vec<f64> = defaults.iter().filter_map(ratio).collect();
    let ratio = summary(ratios).map_or(1.0, |ratios| ratios.median.clamp(0.25, 4.0));
    let largest = measured
        .iter()
        .map(|cell| cell.footprint)
        .max()
        .unwrap_or(0);
    let missing = defaults.iter().filter(|cell| cell.footprint > largest);
    measured.extend(missing.map(|cell| WalkCost {
        saved_ns: scaled(&cell.saved_ns, ratio),
        ..*cell
    }));
    measured
}

/// Sets the costs of huge faults. If only warm ones were measured, cold ones keep the default ratio
/// to them.
pub(super) fn set_huge_faults(
    table: &mut CostTable,
    warm: Option<Measured>,
    cold: Option<Measured>,
) {
    if let Some(warm) = warm {
        let ratio = warm.median / table.fault_2m_warm.median;
        table.fault_2m_cold = scaled(&table.fault_2m_cold, ratio);
        table.fault_2m_warm = warm;
    }
    table.fault_2m_cold = cold.unwrap_or(table.fault_2m_cold);
}

fn scaled(cost: &Measured, factor: f64) -> Measured {
    Measured {
        median: cost.median * factor,
        low: cost.low * factor,
        high: cost.high * factor,
    }
}

#[cfg(test)]
mod tests;
