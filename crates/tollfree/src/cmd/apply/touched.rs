// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a plan's blocks may lie in a process that nobody watched from its start: call sites are
//! unknown there, so the memory that the process touches now stands in for them.
//!
//! The accessed bits are cleared and counted again after a while. They say how much of a mapping
//! was touched, not which part of it and not by which block's name. So mappings are taken, most
//! touched first, until they are as much as the plan wants of such blocks; regions of them that
//! are hardly in memory are left. Nothing is taken from a process that touches little.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use toll_linux::Root;
use toll_linux::proc::{Kind, Pagemap};
use toll_linux::refs::{Touched, clear, referenced};
use toll_linux::watch::Ranges;
use toll_model::REGION;

/// How long touches are counted: what is not touched for so long costs nothing to speak of.
const WINDOW: Duration = Duration::from_secs(1);
/// A region is taken where at least this much of it is in memory: half.
const MOSTLY: u64 = REGION / 2;

/// What stands in for blocks that were not found.
#[derive(Debug, Default, Serialize)]
pub struct StandIn {
    /// Bytes that the plan wants huge of blocks that were not found.
    pub wanted_bytes: u64,
    /// For how long touches were counted.
    pub window_seconds: f64,
    /// The mappings that are taken for them, by address.
    pub mappings: Vec<Taken>,
    #[serde(skip)]
    pub regions: Vec<u64>,
}

/// A mapping that is taken for planned blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taken {
    pub start: u64,
    pub end: u64,
    pub touched_bytes: u64,
    pub resident_bytes: u64,
}

/// Watches a process for a second. `found` is memory that the plan names otherwise.
///
/// # Errors
/// Why nothing can be taken, for people.
pub fn stand_in(pid: u32, wanted: u64, found: &Ranges) -> Result<StandIn, String> {
    let unseen = |error: std::io::Error| format!("its accessed bits cannot be read: {error}");
    clear(pid).map_err(unseen)?;
    thread::sleep(WINDOW);
    let taken = most_touched(&referenced(pid).map_err(unseen)?, wanted, found);
    if taken.is_empty() {
        return Err(format!(
            "it touched no large anonymous memory for {} s: apply the plan while it is under its load",
            WINDOW.as_secs()
        ));
    }
    let regions = regions(pid, &taken).map_err(unseen)?;
    if regions.is_empty() {
        return Err("no 2 MiB of the memory that it touches are mostly in memory".to_owned());
    }
    Ok(StandIn {
        wanted_bytes: wanted,
        window_seconds: WINDOW.as_secs_f64(),
        mappings: taken,
        regions,
    })
}

/// The most touched mappings, until they are as much as is wanted.
fn most_touched(all: &[Touched], wanted: u64, found: &Ranges) -> Vec<Taken> {
    let mut all: Vec<Taken> = all
        .iter()
        .filter(|it| it.mapping.is_private_anonymous() && it.mapping.kind() == Kind::Anonymous)
        .filter(|it| found.covered(it.mapping.start, it.mapping.end) == 0)
        // A huge page has one bit, and needs nothing.
        .filter(|it| it.referenced >= REGION && it.huge * 2 < it.resident)
        .map(|it| Taken {
            start: it.mapping.start,
            end: it.mapping.end,
            touched_bytes: it.referenced,
            resident_bytes: it.resident,
        })
        .collect();
    all.sort_by_key(|taken| std::cmp::Reverse(taken.touched_bytes));
    let mut bytes = 0;
    all.retain(|taken| {
        let more = bytes < wanted;
        bytes += taken.touched_bytes;
        more
    });
    all.sort_by_key(|taken| taken.start);
    all
}

/// The regions of these mappings that are mostly in memory.
fn regions(pid: u32, taken: &[Taken]) -> std::io::Result<Vec<u64>> {
    let pagemap = Pagemap::open(&Root::system(), pid)?;
    let mut regions = Vec::new();
    for mapping in taken {
        let present = Ranges::new(pagemap.present(mapping.start, mapping.end)?);
        let first = mapping.start.next_multiple_of(REGION);
        let whole = (first..mapping.end).step_by(REGION as usize);
        regions.extend(
            whole
                .take_while(|region| mapping.end - region >= REGION)
                .filter(|region| present.covered(*region, region + REGION) >= MOSTLY),
        );
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::super::resolve::tests::mapping;
    use super::*;

    const BASE: u64 = 0x7f00_0000_0000;

    fn touched(number: u64, name: &str, referenced: u64, huge: u64) -> Touched {
        let start = BASE + number * (1 << 30);
        Touched {
            mapping: mapping(start, 16 * REGION, name),
            referenced,
            resident: 16 * REGION,
            huge,
        }
    }

    #[test]
    fn the_most_touched_mappings_are_taken_up_to_what_is_wanted() {
        let all = [
            touched(0, "", 4 * REGION, 0),
            touched(1, "", 16 * REGION, 0),
            touched(2, "", 12 * REGION, 0),
            // Not what a plan means by blocks, hardly touched, or huge already.
            touched(3, "[heap]", 16 * REGION, 0),
            touched(4, "", REGION / 2, 0),
            touched(5, "", 16 * REGION, 16 * REGION),
        ];
        let none = Ranges::default();
        let starts = |wanted: u64, found: &Ranges| -> Vec<u64> {
            let taken = most_touched(&all, wanted, found);
            taken.iter().map(|it| (it.start - BASE) >> 30).collect()
        };
        assert_eq!(starts(REGION, &none), [1]);
        assert_eq!(starts(17 * REGION, &none), [1, 2]);
        assert_eq!(starts(100 * REGION, &none), [0, 1, 2]);
        let found = Ranges::new([(BASE + (1 << 30), BASE + (1 << 30) + 4096)]);
        assert_eq!(starts(REGION, &found), [2]);
    }
}
