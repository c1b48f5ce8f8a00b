// SPDX-License-Identifier: MIT OR Apache-2.0
//! The grid: additional cost of an access with 4 KiB pages over huge pages, by footprint and number
//! of chains.

use std::time::Instant;

use toll_model::REGION;
use toll_model::cost::{Measured, WalkCost};
use toll_model::random::Random;

use super::budget::Budget;
use super::chase::{CHAINS, sample};
use super::clock::{cpu_ns, summary, timed};
use crate::memory::{Memory, Pages};
use crate::proc::smaps_each;
use crate::remote::Advice;
use crate::{Root, sys};

const MIB: u64 = 1 << 20;
/// Within the reach of any second-level TLB and far beyond any first level: measures second-level
/// hits.
const HITS: u64 = REGION;
const SMALLEST: u64 = 16 * MIB;
const LARGEST: u64 = 4096 * MIB;

/// Results of the grid.
pub(super) struct Grid {
    pub(super) walk: Vec<WalkCost>,
    /// Whether every cell that fits into this machine's memory was measured.
    pub(super) complete: bool,
    /// CPU time of each first touch of a huge page, ns.
    pub(super) huge_faults: Vec<f64>,
}

/// Measures increasing footprints until memory or time runs out.
pub(super) fn measure(budget: &Budget, progress: &mut dyn FnMut(&str)) -> Grid {
    let mut grid = Grid {
        walk: Vec::new(),
        complete: true,
        huge_faults: Vec::new(),
    };
    let most = LARGEST.min(budget.memory / 2 / REGION * REGION);
    let Ok(mut pair) = Pair::reserve(most) else {
        grid.complete = false;
        return grid;
    };
    let fine = budget.is_ample();
    let walks = (0..).map(|step| SMALLEST << if fine { step } else { 2 * step });
    let footprints = std::iter::once(HITS).chain(walks);
    for footprint in footprints.take_while(|footprint| *footprint <= most) {
        if !budget.allows(pair.seconds_to_grow(footprint) + cells_seconds(fine)) {
            grid.complete = false;
            break;
        }
        progress(&format!("walks over {} MiB", footprint / MIB));
        if !pair.grow(footprint, budget, &mut grid.huge_faults) {
            grid.complete = false;
            break;
        }
        let samples = if fine { 15 } else { 7 };
        grid.walk.extend(pair.costs(footprint, samples));
    }
    grid
}

/// Upper estimate of the time for the cells of one populated footprint.
fn cells_seconds(fine: bool) -> f64 {
    if fine { 0.8 } else { 0.4 }
}

/// The same amount of memory twice: in 4 KiB pages and in huge pages.
struct Pair {
    small: Memory,
    huge: Memory,
    populated: u64,
    /// Seconds per byte that populating both took last time.
    pace: f64,
}

impl Pair {
    fn reserve(length: u64) -> std::io::Result<Pair> {
        Ok(Pair {
            small: Memory::reserve(length, Pages::Small)?,
            huge: Memory::reserve(length, Pages::Huge)?,
            populated: 0,
            // 0.5 s for the first GiB of each.
            pace: 0.5 / (1024 * MIB) as f64,
        })
    }

    fn seconds_to_grow(&self, footprint: u64) -> f64 {
        self.pace * 1.5 * (footprint - self.populated) as f64
    }

    /// Populates up to `footprint`; false if huge pages or time ran out.
    fn grow(&mut self, footprint: u64, budget: &Budget, faults: &mut Vec<f64>) -> bool {
        let began = Instant::now();
        let from = self.populated;
        for region in (from..footprint).step_by(REGION as usize) {
            if budget.is_over() || memory_is_short() {
                return false;
            }
            self.small.touch_pages(region, region + REGION);
            faults.push(timed(|| self.huge.touch(region)));
            // If the machine's setting prevented a huge page, collapse it explicitly.
            self.huge.touch_pages(region, region + REGION);
        }
        self.populated = footprint;
        self.pace = began.elapsed().as_secs_f64() / (footprint - from) as f64;
        self.is_huge(footprint) || (self.collapse(from) && self.is_huge(footprint))
    }

    fn collapse(&self, from: u64) -> bool {
        let length = self.populated - from;
        self.huge.advise(from, length, Advice::Collapse).is_ok()
    }

    /// Whether at least 95 % of the first `footprint` bytes are huge pages.
    fn is_huge(&self, footprint: u64) -> bool {
        let base = self.huge.base() as u64;
        let mut huge = 0;
        let read = smaps_each(&Root::system(), std::process::id(), |smap| {
            let (start, end) = (smap.mapping.start, smap.mapping.end);
            if start < base + footprint && end > base {
                huge += smap.anon_huge;
            }
        });
        read.is_ok() && huge >= footprint / 20 * 19
    }

    /// Measures the cells of one footprint, in random order, with 4 KiB and huge pages interleaved.
    fn costs(&self, footprint: u64, samples: usize) -> Vec<WalkCost> {
        let mut random = Random::new(footprint ^ cpu_ns() as u64);
        let mut differences: [Vec<f64>; CHAINS.len()] = Default::default();
        for round in 0..=samples {
            for cell in shuffled(&mut random) {
                let difference = self.difference(footprint, CHAINS[cell], &mut random);
                // The first round warms caches and page tables.
                if round != 0 {
                    differences[cell].push(difference);
                }
            }
        }
        let cells = CHAINS.into_iter().zip(differences);
        cells
            .filter_map(|(chains, samples)| {
                Some(WalkCost {
                    footprint,
                    chains,
                    saved_ns: not_negative(summary(samples)?),
                })
            })
            .collect()
    }

    /// Returns the additional ns of an access with 4 KiB pages; the order of the two is random.
    fn difference(&self, footprint: u64, chains: u32, random: &mut Random) -> f64 {
        let seed = random.bits();
        let time = |memory: &Memory| sample(memory.base(), footprint, chains, seed);
        if random.below(2) == 0 {
            let huge = time(&self.huge);
            time(&self.small) - huge
        } else {
            let small = time(&self.small);
            small - time(&self.huge)
        }
    }
}

/// Whether other programs need the memory.
fn memory_is_short() -> bool {
    const LEAST: u64 = 512 * MIB;
    // The memory of a control group is accounted separately; its limit is in the budget.
    sys::meminfo(&Root::system()).is_ok_and(|info| info.available < LEAST.min(info.total / 8))
}

/// Clamps a cost at zero: negative values are noise around zero.
fn not_negative(measured: Measured) -> Measured {
    Measured {
        median: measured.median.max(0.0),
        low: measured.low.max(0.0),
        high: measured.high.max(0.0),
    }
}

/// Returns the indices of [`CHAINS`] in random order.
fn shuffled(random: &mut Random) -> [usize; CHAINS.len()] {
    let mut order = std::array::from_fn(|index| index);
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
    order
}
