// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for crash states: none is wrong, and each injected bug makes one that is.

use std::time::Instant;

use toll_image::crash::lines::Lines;
use toll_image::crash::random::Random;
use toll_image::crash::trace::{Event, Trace};
use toll_image::crash::workload::{Mixed, basic, prepared};
use toll_image::crash::world::World;
use toll_image::crash::{Report, Search, Violation};
use toll_image::fault::Fault;
use toll_image::layout::Time;
use toll_image::make::{Template, make};
use toll_image::survey;

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

/// Over noise, as another format would leave it.
#[test]
fn an_interrupted_mkfs_leaves_nothing_or_an_empty_file_system() {
    let noise: Vec<u8> = (0..20 * 4096u32).map(|at| (at / 7 + 1) as u8).collect();
    let mut trace = Trace::new(noise.clone());
    let template = Template {
        uuid: [3; 16],
        pages: 20,
        now: Time::default(),
        mode: 0o755,
        uid: 0,
        gid: 0,
    };
    make(&mut trace, &template).unwrap();
    let (mut durable, mut lines) = (Trace::new(noise), Lines::default());
    let (mut nothing, mut empty) = (0, 0);
    for event in &trace.events {
        let choices = match event {
            Event::Fence => lines.choices(500, &mut Random::new(1)).0,
            _ => Vec::new(),
        };
        for choice in choices {
            let mark = durable.mark();
            lines.apply(&choice, &mut durable);
            match survey(&durable) {
                Err(_) => nothing += 1,
                Ok(found) => {
                    assert!(found.names.is_empty() && found.inodes.len() == 1);
                    let mut whats = found.findings.list.iter().map(|it| it.what);
                    assert!(whats.all(|what| what == "a copy of the superblock is damaged"));
                    empty += 1;
                }
            }
            durable.rewind(mark);
        }
        lines.follow(event, &mut durable);
    }
    assert!(nothing > 500 && empty > 10, "{nothing} {empty}");
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
