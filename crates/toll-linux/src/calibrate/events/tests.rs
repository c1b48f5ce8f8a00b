// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn few_samples_are_no_cost_and_negative_ones_are_noise() {
    assert_eq!(of_samples(vec![1.0; ENOUGH - 1]), None);
    let cost = of_samples([vec![-5.0; 4], vec![3.0; 8]].concat()).unwrap();
    assert_eq!((cost.low, cost.median, cost.high), (0.0, 3.0, 3.0));
}

/// Pages of another thread's process are flushed there: the time is that of an interrupt, not of a
/// system call or of a second.
#[test]
fn a_shootdown_costs_both_sides() {
    if sched_getaffinity(None).is_ok_and(|allowed| two_of(&allowed).is_none()) {
        eprintln!("skipped: one CPU");
        return;
    }
    let stop = || false;
    let budget = Budget {
        began: Instant::now(),
        within: Duration::from_secs(20),
        memory: 1 << 30,
        stop: &stop,
    };
    let (sent, received) = shootdowns(&budget);
    assert_eq!(sent.len(), received.len());
    if sent.len() < ENOUGH {
        eprintln!("skipped: the other thread got no CPU");
        return;
    }
    let sent = of_samples(sent).unwrap();
    assert!(sent.median > 0.0 && sent.median < 1e6, "{sent:?}");
}
