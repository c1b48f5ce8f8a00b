// SPDX-License-Identifier: MIT OR Apache-2.0
//! The searches that the format is checked by, for its tests and for `toll-lab crash-states`.

use std::ops::Range;

use super::workload::{Mixed, basic, prepared};
use super::world::World;
use super::{Report, Search, Violation};
use crate::fault::Fault;

/// Pages of the ranges: enough for all operations of a sequence, and quick to copy.
const PAGES: u64 = 40;
/// Of those of long sequences.
const PAGES_OF_LONG: u64 = 64;
/// With room for blocks of 2 MiB.
const PAGES_WITH_BLOCKS: u64 = 1536;

/// The most operations of the sequences that [`sequences`] goes through completely.
pub const LENGTH: usize = 3;

type Outcome = Result<Report, Box<Violation>>;

/// All sequences of `length` operations over two files and a directory.
///
/// # Errors
/// The first state that is wrong. Here and below.
pub fn sequences(length: usize) -> Outcome {
    let most = [2000, 100, 4][length - 1];
    let mut search = Search::new(None, most, 1);
    search.sequences(&prepared(PAGES, None), &basic(), length)?;
    Ok(search.report)
}

/// Random sequences of 150 operations, one for each seed.
pub fn long(seeds: Range<u64>) -> Outcome {
    let mut search = Search::new(None, 50, seeds.start);
    for seed in seeds {
        let mut world = World::new(PAGES_OF_LONG, None);
        world.soil();
        search.walk(&mut world, Mixed::new(seed).take(150))?;
    }
    Ok(search.report)
}

/// Random sequences of 60 operations, blocks of 2 MiB among them, one for each seed.
pub fn with_blocks(seeds: Range<u64>) -> Outcome {
    let mut search = Search::new(None, 6, seeds.start);
    for seed in seeds {
        let mut world = World::new(PAGES_WITH_BLOCKS, None);
        let mut mixed = Mixed::new(seed);
        mixed.blocks = true;
        search.walk(&mut world, mixed.take(60))?;
    }
    Ok(search.report)
}

/// The violation that an injected bug leads to, with the states that were looked at before.
pub fn violation(fault: Fault) -> Option<Box<Violation>> {
    let world = prepared(PAGES, Some(fault));
    let mut states = 0;
    for (length, most) in [(1, 200), (2, 30), (3, 10)] {
        let mut search = Search::new(Some(fault), most, 1);
        if let Err(mut found) = search.sequences(&world, &basic(), length) {
            found.states += states;
            return Some(found);
        }
        states += search.report.all();
    }
    None
}
