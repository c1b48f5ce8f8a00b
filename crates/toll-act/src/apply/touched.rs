// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects memory of a process that was not observed from its start, in place of a plan's blocks:
//! their call sites are unknown, so the memory that the process touches now is used.
//!
//! The accessed bits are cleared, and counted after the window. They show how much of a mapping was
//! touched, but not which part, nor which block. So mappings are selected, most touched first,
//! until they reach the size of the planned blocks that were not found; mostly unpopulated regions
//! are skipped. Nothing is selected in a process that touches little.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use toll_linux::Root;
use toll_linux::accessed::{Touched, clear, referenced};
use toll_linux::proc::{Kind, Pagemap};
use toll_linux::watch::Ranges;
use toll_model::REGION;

/// How long touches are counted. Memory that is not touched within it has no significant overhead.
const WINDOW: Duration = Duration::from_secs(1);
/// A region is selected if at least this much of it is resident: half.
const MOSTLY: u64 = REGION / 2;

/// The mappings selected in place of blocks that were not found.
#[derive(Debug, Default, Serialize)]
pub struct StandIn {
    /// Planned bytes of blocks that were not found.
    pub wanted_bytes: u64,
    /// How long touches were counted, in seconds.
    pub window_seconds: f64,
    /// The selected mappings, by address.
    pub mappings: Vec<Taken>,
    #[serde(skip)]
    pub regions: Vec<u64>,
}

/// A mapping selected for planned blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Taken {
    pub start: u64,
    pub end: u64,
    pub touched_bytes: u64,
    pub resident_bytes: u64,
}

/// Observes a process for a second. `found` is memory that other sites of the plan match.
///
/// # Errors
/// The reason why nothing can be selected, as text.
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
        return Err("no 2 MiB region of the memory that it touches is mostly resident".to_owned());
    }
    Ok(StandIn {
        wanted_bytes: wanted,
        window_seconds: WINDOW.as_secs_f64(),
        mappings: taken,
        regions,
    })
}

/// The most touched mappings, until they reach the wanted size.
fn most_touched(all: &[Touched], wanted: u64, found: &Ranges) -> Vec<Taken> {
    let mut all: Vec<Taken> = all
        .iter()
        .filter(|it| it.mapping.is_private_anonymous() && it.mapping.kind() == Kind::Anonymous)
        .filter(|it| found.covered(it.mapping.start, it.mapping.end) == 0)
        // A huge page has a single accessed bit and needs no collapse.
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

/// The regions of these mappings that are mostly resident.
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
    use toll_testkit::model::mapping;

    use super::*;

    const BASE: u64 = 0x7f00_0000_0000;

    fn touched(number: u64, name: &str, referenced: u64, huge: u64) -> Touched {
        let start = BASE + number * (1 << 30);
        Touched {
            mapping: mapping(start, start + 16 * REGION, name),
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
            // Not a mapping of blocks, hardly touched, or already huge.
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
