// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for crash states: none is wrong, and each injected bug makes one that is.

use std::time::Instant;

use toll_image::crash::workload::{Mixed, basic, prepared};
use toll_image::crash::world::World;
use toll_image::crash::{Report, Search, Violation};
use toll_image::fault::Fault;

/// Pages of the ranges: enough for all operations of a sequence, and quick to copy.
const PAGES: u64 = 40;
/// With room for blocks of 2 MiB.
const PAGES_WITH_BLOCKS: u64 = 1536;

fn print(name: &str, report: &Report, begin: Instant) {
    eprintln!("{name}: {report}; {:.1} s", begin.elapsed().as_secs_f64());
}

fn no_violation(result: Result<(), Box<Violation>>) {
    if let Err(violation) = result {
        panic!("{violation:#?}");
    }
}

#[test]
fn no_sequence_of_up_to_three_operations_leaves_a_wrong_state() {
    let world = prepared(PAGES, None);
    let mut states = 0;
    for (length, most) in [(1, 2000), (2, 100), (3, 4)] {
        let begin = Instant::now();
        let mut search = Search::new(None, most, 1);
        no_violation(search.sequences(&world, &basic(), length));
        print(&format!("length {length}"), &search.report, begin);
        states += search.report.states + search.report.second;
    }
    assert!(states >= 100_000, "{states}");
}

#[test]
fn no_long_sequence_leaves_a_wrong_state() {
    let begin = Instant::now();
    let mut search = Search::new(None, 50, 2);
    for seed in 0..10 {
        let mut world = World::new(64, None);
        world.soil();
        no_violation(search.walk(&mut world, Mixed::new(seed).take(150)));
    }
    print("long", &search.report, begin);
    assert!(search.report.states + search.report.second > 10_000);
}

#[test]
fn no_sequence_with_blocks_leaves_a_wrong_state() {
    let begin = Instant::now();
    let mut search = Search::new(None, 6, 3);
    for seed in 0..3 {
        let mut world = World::new(PAGES_WITH_BLOCKS, None);
        let mut mixed = Mixed::new(seed);
        mixed.blocks = true;
        no_violation(search.walk(&mut world, mixed.take(60)));
    }
    print("blocks", &search.report, begin);
    assert!(search.report.states + search.report.second > 500);
}

/// The violation that a bug leads to: in short sequences, or else in long ones.
fn violation(fault: Fault) -> Option<Box<Violation>> {
    let world = prepared(PAGES, Some(fault));
    let mut states = 0;
    for (length, most) in [(1, 200), (2, 30)] {
        let mut search = Search::new(Some(fault), most, 1);
        if let Err(mut found) = search.sequences(&world, &basic(), length) {
            found.states += states;
            return Some(found);
        }
        states += search.report.states + search.report.second;
    }
    let mut search = Search::new(Some(fault), 10, 1);
    let found = search.sequences(&world, &basic(), 3).err();
    found.map(|mut found| {
        found.states += states;
        found
    })
}

#[test]
fn each_injected_bug_is_found() {
    eprintln!("{:>8}  {:24} after", "states", "bug");
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        match violation(fault) {
            Some(found) => {
                let name = format!("{fault:?}");
                eprintln!(
                    "{:8}  {name:24} {:?}: {}",
                    found.states, found.sequence, found.what
                );
            }
            None => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
