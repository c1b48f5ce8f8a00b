// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_act::permanent::Change;

use super::*;
use crate::compare::mock::{Mock, rules};

fn run(executor: &mut dyn Executor, variants: &[Variant], rules: &Rules) -> Result<Runs> {
    go_on(executor, variants, rules, vec![Vec::new(); variants.len()])
}

fn two() -> Vec<Variant> {
    vec![Variant::none(), Variant::all()]
}

#[test]
fn orders_are_balanced() {
    let mut three: Vec<Vec<usize>> = (0..6).map(|round| order(round, 3)).collect();
    three.sort();
    three.dedup();
    assert_eq!(three.len(), 6);
    assert_eq!((order(0, 2), order(1, 2)), (vec![0, 1], vec![1, 0]));
    for variants in 2..7 {
        // A block of the design, at any start: the first round is not counted.
        let block = if variants % 2 == 0 {
            variants
        } else {
            2 * variants
        };
        for first in [0, 1, 5] {
            let orders: Vec<_> = (first..first + block)
                .map(|r| order(r as u32, variants))
                .collect();
            let followed = |a, b| {
                let pairs = orders.iter().flat_map(|order| order.windows(2));
                pairs.filter(|pair| *pair == [a, b]).count()
            };
            for a in 0..variants {
                for place in 0..variants {
                    let there = orders.iter().filter(|order| order[place] == a).count();
                    assert_eq!(
                        there,
                        block / variants,
                        "{variants} variants: {a} at {place}"
                    );
                }
                for b in (0..variants).filter(|b| *b != a) {
                    assert_eq!(
                        followed(a, b),
                        block / variants,
                        "{variants} variants: {b} after {a}"
                    );
                }
            }
        }
    }
    for variants in 1..7 {
        for round in 0..20 {
            let mut seen = order(round, variants);
            seen.sort_unstable();
            assert_eq!(seen, (0..variants).collect::<Vec<_>>());
        }
    }
}

#[test]
fn two_variants_take_turns_in_being_first() {
    let firsts: Vec<usize> = (0..8).map(|round| order(round, 2)[0]).collect();
    assert_eq!(firsts.iter().sum::<usize>(), 4, "{firsts:?}");
}

#[test]
fn each_variant_is_waited_for_where_each_counts() {
    // The third one has too much noise for 8 rounds.
    let wild = [1.7, 2.3];
    let times: [(&str, &[f64]); 3] = [("none", &[2.0]), ("plan", &[1.0]), ("all", &wild)];
    let variants = [Variant::none(), Variant::plan("p"), Variant::all()];
    let second = run(&mut Mock::new(&times), &variants, &rules(None, 9999.0)).unwrap();
    assert_eq!(
        (second.stopped, second.rounds()),
        (Stopped::Resolved, FEWEST + 1)
    );
    let rules = Rules {
        each: true,
        ..rules(None, 60.0)
    };
    let each = run(&mut Mock::new(&times), &variants, &rules).unwrap();
    assert!(each.rounds() > FEWEST + 1, "{}", each.rounds());
}

#[test]
fn each_variant_that_is_judged_is_waited_for() {
    // The change gains, with too much noise to prove it in 8 rounds.
    let wild = [1.5, 1.9, 1.6, 1.85];
    let times: [(&str, &[f64]); 4] = [
        ("none", &[2.0]),
        ("plan", &[1.0]),
        ("all", &wild),
        ("change", &wild),
    ];
    let change = Variant::change("change", Change::default());
    let rounds = |last: Variant| {
        let variants = [Variant::none(), Variant::plan("p"), last];
        let runs = run(&mut Mock::new(&times), &variants, &rules(None, 9999.0)).unwrap();
        assert_eq!(runs.stopped, Stopped::Resolved);
        runs.rounds()
    };
    // Everything huge is never applied.
    assert_eq!(rounds(Variant::all()), FEWEST + 1);
    assert!(rounds(change) > FEWEST + 1);
}

#[test]
fn the_number_of_pairs_is_kept_and_the_first_is_dropped() {
    let mut mock = Mock::new(&[("none", &[9.0, 2.0]), ("all", &[9.0, 1.0])]);
    let runs = run(&mut mock, &two(), &rules(Some(3), 1000.0)).unwrap();
    assert_eq!((runs.rounds(), runs.stopped), (4, Stopped::Pairs));
    assert_eq!(runs.counted(0).len(), 3);
    assert_eq!(runs.counted(0)[0].elapsed, 2.0);
}

#[test]
fn a_clear_effect_ends_it_early() {
    let mut mock = Mock::new(&[("none", &[2.0, 2.01]), ("all", &[1.0, 1.01])]);
    let runs = run(&mut mock, &two(), &rules(None, 1000.0)).unwrap();
    assert_eq!(
        (runs.rounds(), runs.stopped),
        (FEWEST + 1, Stopped::Resolved)
    );
}

#[test]
fn no_effect_ends_it_early() {
    let mut mock = Mock::new(&[("none", &[2.0, 2.001]), ("all", &[2.001, 2.0])]);
    let runs = run(&mut mock, &two(), &rules(None, 1000.0)).unwrap();
    assert_eq!(
        (runs.rounds(), runs.stopped),
        (FEWEST + 1, Stopped::NoEffect)
    );
}

#[test]
fn noise_is_hunted_until_the_time_is_up_and_not_beyond() {
    let mut mock = Mock::new(&[
        ("none", &[2.0, 2.6, 1.9, 2.2, 2.9]),
        ("all", &[2.5, 1.9, 2.1, 2.8, 1.8, 2.4, 2.0]),
    ]);
    let runs = run(&mut mock, &two(), &rules(None, 60.0)).unwrap();
    assert_eq!(runs.stopped, Stopped::Time);
    assert!(
        mock.clock <= 60.0 && mock.clock > 60.0 - 5.7,
        "{}",
        mock.clock
    );
}

#[test]
fn a_run_longer_than_the_limit_is_ended_at_the_limit() {
    let mut mock = Mock::new(&[("none", &[500.0]), ("all", &[500.0])]);
    let runs = run(&mut mock, &two(), &rules(None, 60.0)).unwrap();
    assert_eq!((runs.rounds(), runs.stopped), (0, Stopped::TooLong));
    assert_eq!(mock.clock, 60.0);
}

#[test]
fn an_interrupt_keeps_the_complete_rounds() {
    let mut mock = Mock::new(&[("none", &[2.0]), ("all", &[1.0])]);
    mock.interrupt_after = 7;
    let runs = run(&mut mock, &two(), &rules(None, 600.0)).unwrap();
    assert_eq!((runs.rounds(), runs.stopped), (3, Stopped::Interrupted));
    assert_eq!(runs.counted(0).len(), 2);
}

#[test]
fn stored_rounds_are_gone_on_from_after_another_warm_up() {
    let early = |elapsed: &[f64]| -> Vec<Sample> {
        let sample = |(round, elapsed): (usize, &f64)| Sample {
            round: round as u32,
            elapsed: *elapsed,
            ..Sample::default()
        };
        elapsed.iter().enumerate().map(sample).collect()
    };
    // The third round is incomplete.
    let stored = vec![early(&[9.0, 2.0, 2.1]), early(&[9.0, 1.0])];
    let mut mock = Mock::new(&[("none", &[8.0, 2.2, 2.3]), ("all", &[8.0, 1.2, 1.3])]);
    let runs = go_on(&mut mock, &two(), &rules(Some(3), 1000.0), stored).unwrap();
    assert_eq!((runs.rounds(), runs.stopped), (4, Stopped::Pairs));
    let elapsed =
        |variant: usize| -> Vec<f64> { runs.variants[variant].iter().map(|s| s.elapsed).collect() };
    assert_eq!(elapsed(0), [9.0, 2.0, 2.2, 2.3]);
    assert_eq!(elapsed(1), [9.0, 1.0, 1.2, 1.3]);
    let rounds: Vec<u32> = runs.variants[0].iter().map(|s| s.round).collect();
    assert_eq!(rounds, [0, 1, 2, 3]);
}

#[test]
fn where_nothing_is_to_be_found_little_is_found() {
    // A linear congruential generator: the noise is the same in each test run.
    let mut state = 7u64;
    let mut noise = || {
        let mut sum = 0.0;
        for _ in 0..6 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            sum += (state >> 33) as f64 / (1u64 << 31) as f64;
        }
        1.0 + (sum - 3.0) * 0.04
    };
    let trials = 25;
    let mut wrong = 0;
    for _ in 0..trials {
        let none: Vec<f64> = (0..60).map(|_| noise()).collect();
        let all: Vec<f64> = (0..60).map(|_| noise()).collect();
        let mut mock = Mock::new(&[("none", &none), ("all", &all)]);
        let runs = run(&mut mock, &two(), &rules(None, 80.0)).unwrap();
        let interval = runs.speedup(1, Resource::Elapsed, CONFIDENCE).unwrap();
        wrong += usize::from(matches!(
            interval.verdict(),
            stats::Verdict::Faster | stats::Verdict::Slower
        ));
    }
    assert!(wrong * 100 <= trials * 8, "{wrong} of {trials}");
}
