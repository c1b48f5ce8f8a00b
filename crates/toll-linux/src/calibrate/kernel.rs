// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures costs for the kernel's estimator (mm/econ), as far as user space can trigger the
//! operation alone.
//!
//! All costs are measured in turn, one sample each per round, so that changes over time affect all
//! of them alike. Blocks were used some rounds before and are no longer cached.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use toll_model::cost::Measured;
use toll_model::{PAGE, REGION};

use super::budget::Budget;
use super::clock::{summary, timed};
use super::faults::{COLD_FACTOR, huge_fault};
use super::reclaim::Reclaim;
use crate::Root;
use crate::memory::{Memory, Pages};
use crate::remote::Advice;

/// Maximum number of rounds.
const ROUNDS: u64 = 400;
/// Minimum number of samples for a cost.
const ENOUGH: usize = 8;
/// Regions between two uses of a block: more than the caches hold.
const APART: u64 = 64;
/// File pages are reclaimed in one of this many rounds: they have to be read first.
const ROUNDS_A_RECLAIM: u64 = 4;

/// A cost, or why it is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelCost {
    /// File name in /sys/kernel/mm/econ/costs.
    pub name: &'static str,
    pub found: Result<Found, &'static str>,
    /// The measured operation.
    pub how: &'static str,
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// In ns.
    pub cost: Measured,
    pub samples: usize,
    /// Samples that were discarded because they took several times as long as the shortest:
    /// providing a block is a cost of the host, not of the kernel.
    pub left_out: usize,
}

/// Samples of each cost, ns.
#[derive(Default)]
struct Samples {
    fault: Vec<f64>,
    /// A huge fault minus the clearing of the same amount in the same round.
    huge_fault: Vec<f64>,
    clear_huge: Vec<f64>,
    collapse: Vec<f64>,
    split: Vec<f64>,
    reclaim_page: Vec<f64>,
}

/// Measures all costs that can be measured within a time limit, with at most `memory` bytes, until
/// `stop` returns true. `progress` receives status lines.
pub fn kernel_costs(
    within: Duration,
    memory: u64,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&str),
) -> Vec<KernelCost> {
    let budget = Budget {
        began: Instant::now(),
        within,
        memory,
        stop,
    };
    let mut samples = Samples::default();
    let split_before = splits();
    if let Some(mut memory) = MeasuredMemory::new(&budget) {
        for round in 0..ROUNDS {
            if budget.is_over() {
                break;
            }
            if round % 50 == 0 {
                progress(&format!("round {round} of {ROUNDS}"));
            }
            memory.round(round, &mut samples);
        }
    }
    // Advice that had no effect is not a sample.
    if splits().saturating_sub(split_before) < samples.split.len() as u64 {
        samples.split.clear();
    }
    samples.into_costs()
}

/// Returns the huge pages that the kernel has split since boot.
fn splits() -> u64 {
    let text = Root::system().read("/proc/vmstat").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("thp_split_page "))
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Memory for the measurement.
struct MeasuredMemory {
    /// A huge page that stays in use, for clearing.
    cleared: Memory,
    regions: u64,
    /// Memory touched by earlier rounds; the oldest is freed first.
    used: VecDeque<Memory>,
    reclaim: Option<Reclaim>,
}

impl MeasuredMemory {
    /// Returns `None` if there is too little memory, or no huge page is available.
    fn new(budget: &Budget) -> Option<MeasuredMemory> {
        let regions = APART.min(budget.memory / 4 / REGION);
        if regions == 0 {
            return None;
        }
        warm(2 * regions)?;
        let cleared = Memory::reserve(regions * REGION, Pages::Huge).ok()?;
        cleared.touch_pages(0, regions * REGION);
        Some(MeasuredMemory {
            cleared,
            regions,
            used: VecDeque::new(),
            reclaim: Reclaim::new(),
        })
    }

    fn round(&mut self, round: u64, samples: &mut Samples) {
        let cleared = self.clear(round);
        samples.clear_huge.push(cleared);
        let fault = self.touch_huge();
        if let Some(fault) = fault.filter(|ns| *ns < COLD_FACTOR * cleared) {
            samples.huge_fault.push(fault - cleared);
        }
        self.touch_small(samples);
        while self.used.len() as u64 > self.regions {
            self.used.pop_front();
        }
        if round % ROUNDS_A_RECLAIM == 0 {
            let reclaimed = self.reclaim.as_mut().and_then(Reclaim::page);
            samples.reclaim_page.extend(reclaimed);
        }
    }

    fn clear(&self, round: u64) -> f64 {
        let region = round % self.regions * REGION;
        timed(|| self.cleared.clear_pages(region, region + REGION))
    }

    fn touch_huge(&mut self) -> Option<f64> {
        let memory = Memory::reserve(REGION, Pages::Huge).ok()?;
        let fault = huge_fault(&memory, 0);
        self.used.push_back(memory);
        fault
    }

    /// Collapses 4 KiB pages into a huge page and splits it.
    fn touch_small(&mut self, samples: &mut Samples) {
        let Ok(memory) = Memory::reserve(REGION, Pages::Small) else {
            return;
        };
        let touched = timed(|| memory.touch_pages(0, REGION));
        samples.fault.push(touched / (REGION / PAGE) as f64);
        let mut is_done = memory.choose(Pages::Huge).is_ok();
        let mut advise = |length, advice| {
            timed(|| is_done = is_done && memory.advise(0, length, advice).is_ok())
        };
        let collapsed = advise(REGION, Advice::Collapse);
        let split = advise(PAGE, Advice::Cold);
        if is_done {
            samples.collapse.push(collapsed);
            samples.split.push(split);
        }
        self.used.push_back(memory);
    }
}

/// Makes the host provide `regions` regions.
fn warm(regions: u64) -> Option<()> {
    let memory = Memory::reserve(regions * REGION, Pages::Huge).ok()?;
    memory.touch_pages(0, regions * REGION);
    Some(())
}

impl Samples {
    fn into_costs(self) -> Vec<KernelCost> {
        const NO_HUGE: &str = "no huge page is available";
        const ALONE: &str = "user space cannot trigger it in isolation";
        let per_page = 1.0 / (REGION / PAGE) as f64;
        let clear_page = self.clear_huge.iter().map(|ns| ns * per_page).collect();
        let cost = |name, samples: Vec<f64>, how, why| KernelCost {
            name,
            found: found(without_slow(samples), why),
            how,
        };
        let huge_fault = KernelCost {
            name: "huge_fault",
            found: found_difference(self.huge_fault, "not distinguishable from clearing"),
            how: "first touches of huge pages, minus clearing of the same size",
        };
        vec![
            cost(
                "fault",
                self.fault,
                "first touches of 4 KiB pages",
                "no memory",
            ),
            huge_fault,
            cost(
                "clear_page",
                clear_page,
                "clearing of 2 MiB, per 4 KiB page",
                NO_HUGE,
            ),
            cost("clear_huge", self.clear_huge, "clearing of 2 MiB", NO_HUGE),
            cost("compact_block", Vec::new(), "", ALONE),
            cost("move_page", Vec::new(), "", ALONE),
            cost("collapse", self.collapse, "MADV_COLLAPSE of 2 MiB", NO_HUGE),
            cost(
                "split",
                self.split,
                "MADV_COLD on one 4 KiB page of a huge page",
                NO_HUGE,
            ),
            cost(
                "reclaim_page",
                self.reclaim_page,
                "MADV_PAGEOUT of clean pages of a file",
                "no file with reclaimable pages",
            ),
        ]
    }
}

/// Splits off the number of samples that took several times as long as the shortest.
fn without_slow(mut samples: Vec<f64>) -> (Vec<f64>, usize) {
    let all = samples.len();
    let low = summary(samples.clone()).map_or(0.0, |all| all.low);
    samples.retain(|ns| *ns <= COLD_FACTOR * low);
    let left_out = all - samples.len();
    (samples, left_out)
}

fn found((samples, left_out): (Vec<f64>, usize), why: &'static str) -> Result<Found, &'static str> {
    let number = samples.len();
    match summary(samples) {
        Some(cost) if number >= ENOUGH => Ok(Found {
            cost,
            samples: number,
            left_out,
        }),
        _ => Err(why),
    }
}

/// All samples count: the shortest differences are chance, so that none is several times another.
fn found_difference(samples: Vec<f64>, why: &'static str) -> Result<Found, &'static str> {
    match is_above_zero(&samples) {
        true => found((samples, 0), why),
        false => Err(why),
    }
}

/// Whether the median of differences is significantly above 0 (by its order statistics, 95 %).
fn is_above_zero(differences: &[f64]) -> bool {
    let number = differences.len() as f64;
    let above = differences.iter().filter(|ns| **ns > 0.0).count() as f64;
    above > number / 2.0 + number.sqrt()
}

#[cfg(test)]
mod tests;
