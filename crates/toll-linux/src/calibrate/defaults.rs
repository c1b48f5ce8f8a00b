// SPDX-License-Identifier: MIT OR Apache-2.0
//! Default values for costs that were not measured.

use toll_model::cost::{CostTable, Measured, WalkCost};

use super::chase::summary;
use super::key;
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
mod tests {
    use super::*;

    fn cost(median: f64) -> Measured {
        Measured {
            median,
            low: median / 2.0,
            high: median * 2.0,
        }
    }

    fn cell(footprint: u64, chains: u32, median: f64) -> WalkCost {
        WalkCost {
            footprint,
            chains,
            saved_ns: cost(median),
        }
    }

    #[test]
    fn larger_footprints_are_scaled_by_what_was_measured() {
        let defaults = [cell(16, 1, 1.0), cell(64, 1, 10.0), cell(256, 1, 100.0)];
        let measured = vec![cell(16, 1, 1.5), cell(32, 1, 7.0), cell(64, 1, 15.0)];
        let filled = fill_in(measured.clone(), &defaults);
        assert_eq!(filled[..3], measured);
        assert_eq!(filled[3..], [cell(256, 1, 150.0)]);
    }

    #[test]
    fn nothing_measured_leaves_the_defaults() {
        let defaults = [cell(16, 1, 1.0), cell(64, 8, 10.0)];
        assert_eq!(fill_in(Vec::new(), &defaults), defaults);
    }

    #[test]
    fn one_wild_measurement_moves_no_cost_by_more_than_four() {
        let defaults = [cell(16, 1, 1.0), cell(64, 1, 10.0)];
        let filled = fill_in(vec![cell(16, 1, 1000.0)], &defaults);
        assert_eq!(filled[1], cell(64, 1, 40.0));
    }

    #[test]
    fn cold_faults_keep_their_ratio_to_warm_ones() {
        let mut table = default_costs();
        let ratio = table.fault_2m_cold.median / table.fault_2m_warm.median;
        set_huge_faults(&mut table, Some(cost(100.0)), None);
        assert_eq!(table.fault_2m_warm, cost(100.0));
        assert!((table.fault_2m_cold.median - 100.0 * ratio).abs() < 1e-6);
        set_huge_faults(&mut table, None, Some(cost(7.0)));
        assert_eq!(
            (table.fault_2m_warm, table.fault_2m_cold),
            (cost(100.0), cost(7.0))
        );
    }
}
