// SPDX-License-Identifier: MIT OR Apache-2.0

use proptest::prelude::*;

use super::grid::rising;
use super::*;
use crate::cost::{Measured, TlbGeometry, WalkCost};

fn table(walk: Vec<WalkCost>) -> CostTable {
    let tlb = TlbGeometry::preset("zen4").expect("known");
    CostTable {
        walk,
        ..CostTable::default_for("cpu", "6.12", 1 << 34, tlb)
    }
}

fn row(reuse_log2: Option<f32>, dependent: Option<f32>) -> Row {
    Row {
        offset: 0,
        length: 4096,
        accesses: 0.0,
        misses: 1.0,
        misses_huge: None,
        l2_spared: 0.0,
        reuse_log2,
        dependent,
        touched_pages: 1,
        huge: false,
    }
}

#[test]
fn a_chase_costs_what_was_measured() {
    let measured = Measured {
        median: 60.0,
        low: 50.0,
        high: 70.0,
    };
    let point = WalkCost {
        footprint: 1 << 30,
        chains: 1,
        saved_ns: measured,
    };
    let walk = Walk::new(&table(vec![point]), 1 << 30);
    // Uniform over 1 GiB: 12 MiB of it hit.
    let reuse = 30.0 - UNIFORM_REUSE as f32;
    let cost = walk.saved_per_miss(&row(Some(reuse), Some(1.0)));
    let per_miss = 60.0 / (1.0 - 12.0 / 1024.0);
    assert!(
        (cost.median / SLOPE_DEPENDENT[1] - per_miss).abs() < 0.01,
        "{cost:?}"
    );
}

#[test]
fn not_knowing_widens() {
    let walk = Walk::new(
        &table(CostTable::default_for("", "", 1, TlbGeometry::preset("zen4").unwrap()).walk),
        1 << 32,
    );
    let known = walk.saved_per_miss(&row(Some(30.0), Some(0.5)));
    let unknown = walk.saved_per_miss(&row(Some(30.0), None));
    let nothing = walk.saved_per_miss(&row(None, None));
    let width = |e: Estimate| e.high / e.low;
    assert!(width(known) < width(unknown) && width(unknown) < width(nothing));
}

proptest! {
    #[test]
    fn costs_are_monotone(
        saved in prop::collection::vec(-5.0f64..200.0, 20),
        a in 12.0f32..40.0, b in 12.0f32..40.0,
        c in 0.0f32..=1.0, d in 0.0f32..=1.0,
    ) {
        let mut walk = Vec::new();
        for (number, &median) in saved.iter().enumerate() {
            let saved_ns = Measured { median, low: median - 1.0, high: median + 1.0 };
            let footprint = (16 << 20) << (2 * (number / 4));
            walk.push(WalkCost { footprint, chains: 1 << (number % 4), saved_ns });
        }
        let walk = Walk::new(&table(walk), 1 << 32);
        let cost = |reuse, dependent| walk.saved_per_miss(&row(Some(reuse), Some(dependent))).median;
        let within = 1e-9;
        // A larger reuse distance of a page-table line never makes a walk cheaper.
        prop_assert!(cost(a.min(b), c) <= cost(a.max(b), c) + within);
        // Nor does dependence on it.
        prop_assert!(cost(a, c.min(d)) <= cost(a, c.max(d)) + within);
        let estimate = walk.saved_per_miss(&row(Some(a), Some(c)));
        prop_assert!(0.0 <= estimate.low && estimate.low <= estimate.median && estimate.median <= estimate.high);
    }

    #[test]
    fn rising_rises_and_keeps_the_mean(values in prop::collection::vec(-100.0f64..100.0, 1..20)) {
        let levelled = rising(&values);
        prop_assert_eq!(levelled.len(), values.len());
        prop_assert!(levelled.windows(2).all(|pair| pair[0] <= pair[1]));
        let sums = [values.iter().sum::<f64>(), levelled.iter().sum()];
        prop_assert!((sums[0] - sums[1]).abs() < 1e-6);
    }
}
