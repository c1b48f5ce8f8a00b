// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands in for prices that were not measured.

use toll_model::cost::{CostTable, Measured, WalkPrice};

use super::chase::summary;
use super::key;
use crate::{Root, cpu};

/// Default prices under this machine's key, marked incomplete.
pub fn default_costs() -> CostTable {
    let key = key(&Root::system());
    CostTable::default_for(&key.cpu, &key.kernel, key.memory, cpu::tlb_geometry())
}

/// The measured cells and, behind the largest measured footprint, the default ones,
/// scaled by the median ratio of measured to default where both are known.
pub(super) fn fill_in(mut measured: Vec<WalkPrice>, defaults: &[WalkPrice]) -> Vec<WalkPrice> {
    let ratio = |default: &WalkPrice| {
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
    measured.extend(missing.map(|cell| WalkPrice {
        saved_ns: scaled(&cell.saved_ns, ratio),
        ..*cell
    }));
    measured
}

/// Sets the prices of huge faults. Where only warm ones were seen, cold ones keep the
/// default ratio to them.
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

fn scaled(price: &Measured, factor: f64) -> Measured {
    Measured {
        median: price.median * factor,
        low: price.low * factor,
        high: price.high * factor,
    }
}
