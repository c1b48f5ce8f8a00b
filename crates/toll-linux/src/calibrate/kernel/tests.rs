// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_difference_must_be_told_from_nothing() {
    assert!(!is_above_zero(&[]));
    let noise: Vec<f64> = (0..100).map(|n| f64::from(n) - 45.0).collect();
    assert!(!is_above_zero(&noise));
    let clear: Vec<f64> = (0..100).map(|n| f64::from(n) - 30.0).collect();
    assert!(is_above_zero(&clear));
}

/// As on a busy machine: the shortest tenth is noise, and all others are several times as long.
#[test]
fn a_difference_is_of_all_samples() {
    let groups = [(9, -30_000.0), (1, 1_400.0), (5, 5_000.0), (82, 40_000.0)];
    let huge_fault = groups.iter().flat_map(|(times, ns)| vec![*ns; *times]);
    let samples = Samples {
        huge_fault: huge_fault.collect(),
        ..Samples::default()
    };
    let costs = samples.into_costs();
    let cost = costs.iter().find(|cost| cost.name == "huge_fault").unwrap();
    assert_eq!(
        cost.found
            .map(|it| (it.cost.median, it.samples, it.left_out)),
        Ok((40_000.0, 97, 0))
    );
}

#[test]
fn few_samples_are_no_cost() {
    let samples = Samples {
        fault: vec![100.0; ENOUGH],
        split: vec![100.0; ENOUGH - 1],
        ..Samples::default()
    };
    let costs = samples.into_costs();
    let of = |name| costs.iter().find(|cost| cost.name == name).unwrap();
    assert_eq!(
        of("fault").found.map(|it| (it.cost.median, it.samples)),
        Ok((100.0, ENOUGH))
    );
    assert!(of("split").found.is_err() && of("compact_block").found.is_err());
}

#[test]
fn blocks_that_the_host_had_to_provide_are_left_out() {
    let mut samples = vec![450.0; 20];
    samples.extend([5000.0; 30]);
    let found = found(without_slow(samples), "").unwrap();
    assert_eq!(
        (found.cost.high, found.samples, found.left_out),
        (450.0, 20, 30)
    );
}

/// All numbers that this machine can measure are of a plausible magnitude.
#[test]
fn costs_of_this_machine_are_possible() {
    let costs = kernel_costs(Duration::from_secs(2), 64 << 20, &|| false, &mut |_| {});
    assert_eq!(costs.len(), 9);
    for KernelCost { name, found, .. } in costs {
        let Ok(Found { cost, samples, .. }) = found else {
            continue;
        };
        assert!(samples >= ENOUGH, "{name}");
        assert!(
            cost.low <= cost.median && cost.median <= cost.high,
            "{name}"
        );
        assert!((1.0..1e9).contains(&cost.median), "{name}: {cost:?}");
    }
}

#[test]
fn no_time_and_no_memory_give_no_cost() {
    for (within, memory) in [(Duration::ZERO, 1 << 30), (Duration::from_secs(1), 0)] {
        let costs = kernel_costs(within, memory, &|| false, &mut |_| {});
        assert!(costs.iter().all(|cost| cost.found.is_err()), "{costs:?}");
    }
}
