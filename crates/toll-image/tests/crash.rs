// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for crash states: none is wrong, and each injected bug makes one that is.

use toll_image::crash::lines::Lines;
use toll_image::crash::random::Random;
use toll_image::crash::trace::{Event, Trace};
use toll_image::crash::{Report, Violation, all};
use toll_image::fault::Fault;
use toll_image::layout::Time;
use toll_image::make::{Template, make};
use toll_image::survey;

/// States that a search looked at, none of them wrong.
fn states(name: &str, outcome: Result<Report, Box<Violation>>) -> u64 {
    let report = outcome.unwrap_or_else(|violation| panic!("{violation}"));
    eprintln!("{name}: {report}");
    report.all()
}

#[test]
fn no_sequence_of_up_to_three_operations_leaves_a_wrong_state() {
    let lengths = 1..=all::LENGTH;
    let all: u64 = lengths
        .map(|length| states(&format!("length {length}"), all::sequences(length)))
        .sum();
    assert!(all >= 100_000, "{all}");
}

#[test]
fn no_long_sequence_leaves_a_wrong_state() {
    assert!(states("long", all::long(0..10)) > 10_000);
}

#[test]
fn no_sequence_with_blocks_leaves_a_wrong_state() {
    assert!(states("blocks", all::with_blocks(0..3)) > 500);
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

#[test]
fn each_injected_bug_is_found() {
    eprintln!("{:>8}  {:24} after", "states", "bug");
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        match all::violation(fault) {
            Some(found) => {
                let name = format!("{fault:?}");
                eprintln!("{:8}  {name:24} {found}", found.states);
            }
            None => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
