// SPDX-License-Identifier: MIT OR Apache-2.0

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
