// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::medium::Medium;
use crate::word::number_at;

/// The states of two words that a trace can leave.
fn states(trace: Trace) -> Vec<(u64, u64)> {
    let mut durable = Trace::new(vec![0; 4096]);
    let mut lines = Lines::default();
    for event in &trace.events {
        lines.follow(event, &mut durable);
    }
    let (choices, coverage) = lines.choices(100, &mut Random::new(1));
    assert_eq!(coverage, Coverage::All);
    let mut states = Vec::new();
    for choice in choices {
        let mark = durable.mark();
        lines.apply(&choice, &mut durable);
        states.push((
            number_at(durable.bytes(), 0),
            number_at(durable.bytes(), 64),
        ));
        durable.rewind(mark);
    }
    states.sort();
    states
}

fn trace(steps: impl Fn(&mut Trace)) -> Trace {
    let mut trace = Trace::new(vec![0; 4096]);
    steps(&mut trace);
    trace
}

#[test]
fn stores_to_a_line_persist_in_order_and_lines_in_any() {
    let found = states(trace(|it| {
        it.store8(0, 1).unwrap();
        it.store8(0, 2).unwrap();
        it.store8(64, 9).unwrap();
    }));
    assert_eq!(found, [(0, 0), (0, 9), (1, 0), (1, 9), (2, 0), (2, 9)]);
}

#[test]
fn a_fence_persists_what_was_flushed_before() {
    let found = states(trace(|it| {
        it.store8(0, 1).unwrap();
        it.flush(0..8).unwrap();
        it.store8(0, 2).unwrap();
        it.store8(64, 9).unwrap();
        it.fence().unwrap();
    }));
    assert_eq!(found, [(1, 0), (1, 9), (2, 0), (2, 9)]);
}

#[test]
fn a_flush_without_a_fence_persists_nothing_for_certain() {
    let found = states(trace(|it| {
        it.store8(0, 1).unwrap();
        it.flush(0..8).unwrap();
    }));
    assert_eq!(found, [(0, 0), (1, 0)]);
}

#[test]
fn many_states_are_sampled_with_the_extremes() {
    let trace = trace(|it| it.store(0, &[7; 4096]).unwrap());
    let mut lines = Lines::default();
    let mut durable = Trace::new(vec![0; 4096]);
    trace
        .events
        .iter()
        .for_each(|event| lines.follow(event, &mut durable));
    let (choices, coverage) = lines.choices(50, &mut Random::new(1));
    let Coverage::Sampled(states) = coverage else {
        panic!("more than 50");
    };
    assert!((states / 9f64.powi(64) - 1.0).abs() < 1e-9);
    assert_eq!(choices.len(), 50);
    assert!(choices.contains(&vec![0; 64]) && choices.contains(&vec![8; 64]));
}
