// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel's estimator (mm/econ) wants to know the price of, as far as user space can
//! make the kernel do it and nothing else.
//!
//! All prices are measured in turn, a sample of each in a round, so that whatever changes
//! meanwhile meets all alike. Blocks were in use some rounds before, and no longer lie in a cache.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use toll_model::{PAGE, REGION};

use super::chase::{cpu_ns, summary};
use super::faults::{COLD_FACTOR, huge_fault};
use super::reclaim::Reclaim;
use super::{Budget, Measured};
use crate::Root;
use crate::hand::Advice;
use crate::memory::{Memory, Pages};

/// Rounds at most.
const ROUNDS: u64 = 400;
/// Fewer samples are no price.
const ENOUGH: usize = 8;
/// Regions between two uses of a block: more than caches hold.
const APART: u64 = 64;
/// Pages of a file are reclaimed in one round of so many: they have to be read before.
const ROUNDS_A_RECLAIM: u64 = 4;

/// A price, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelPrice {
    /// The name of its file in /sys/kernel/mm/econ/costs.
    pub name: &'static str,
    pub found: Result<Found, &'static str>,
    /// What was done to measure it.
    pub how: &'static str,
}

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// In ns.
    pub price: Measured,
    pub samples: usize,
    /// Samples that were left out, as they took several times as long as the shortest: a block that
    /// the host has to provide first is no price of the kernel's.
    pub left_out: usize,
}

/// Samples of each, ns.
#[derive(Default)]
struct Samples {
    fault: Vec<f64>,
    /// A huge fault without what clearing as much took in the same round.
    huge_fault: Vec<f64>,
    clear_huge: Vec<f64>,
    collapse: Vec<f64>,
    split: Vec<f64>,
    reclaim_page: Vec<f64>,
}

/// Measures what can be measured within a time limit, with at most `memory` bytes, until `stop`
/// says so. `progress` gets a line.
pub fn kernel_prices(
    within: Duration,
    memory: u64,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&str),
) -> Vec<KernelPrice> {
    let budget = Budget {
        began: Instant::now(),
        within,
        memory,
        stop,
    };
    let mut samples = Samples::default();
    let split_before = splits();
    if let Some(mut bench) = Bench::new(&budget) {
        for round in 0..ROUNDS {
            if budget.is_over() {
                break;
            }
            if round % 50 == 0 {
                progress(&format!("round {round} of {ROUNDS}"));
            }
            bench.round(round, &mut samples);
        }
    }
    // Advice that the kernel did not follow cost nothing.
    if splits().saturating_sub(split_before) < samples.split.len() as u64 {
        samples.split.clear();
    }
    samples.into_prices()
}

/// Huge pages that the kernel has split since boot.
fn splits() -> u64 {
    let text = Root::system().read("/proc/vmstat").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("thp_split_page "))
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Memory to measure on.
struct Bench {
    /// Huge, in use all the time, for clearing.
    cleared: Memory,
    regions: u64,
    /// What earlier rounds have touched; the oldest is freed.
    used: VecDeque<Memory>,
    reclaim: Option<Reclaim>,
}

impl Bench {
    /// `None` where there is too little memory, or no huge page to be had.
    fn new(budget: &Budget) -> Option<Bench> {
        let regions = APART.min(budget.memory / 4 / REGION);
        if regions == 0 {
            return None;
        }
        warm(2 * regions)?;
        let cleared = Memory::reserve(regions * REGION, Pages::Huge).ok()?;
        cleared.touch_pages(0, regions * REGION);
        Some(Bench {
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

    /// Small pages, which are made a huge one, which is split.
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

/// Has the host provide so many regions.
fn warm(regions: u64) -> Option<()> {
    let memory = Memory::reserve(regions * REGION, Pages::Huge).ok()?;
    memory.touch_pages(0, regions * REGION);
    Some(())
}

pub(super) fn timed(what: impl FnOnce()) -> f64 {
    let began = cpu_ns();
    what();
    cpu_ns() - began
}

impl Samples {
    fn into_prices(self) -> Vec<KernelPrice> {
        const NO_HUGE: &str = "no huge page is to be had";
        const ALONE: &str = "user space cannot make the kernel do it alone";
        let per_page = 1.0 / (REGION / PAGE) as f64;
        let clear_page = self.clear_huge.iter().map(|ns| ns * per_page).collect();
        let price = |name, samples: Vec<f64>, how, why| KernelPrice {
            name,
            found: found(samples, why),
            how,
        };
        let huge_fault = match is_above_zero(&self.huge_fault) {
            true => self.huge_fault,
            false => Vec::new(),
        };
        vec![
            price(
                "fault",
                self.fault,
                "first touches of small pages",
                "no memory",
            ),
            price(
                "huge_fault",
                huge_fault,
                "first touches of huge pages, less the clearing of as much",
                "it cannot be told from clearing",
            ),
            price(
                "clear_page",
                clear_page,
                "clearing of 2 MiB, for each page",
                NO_HUGE,
            ),
            price("clear_huge", self.clear_huge, "clearing of 2 MiB", NO_HUGE),
            price("compact_block", Vec::new(), "", ALONE),
            price("collapse", self.collapse, "MADV_COLLAPSE of 2 MiB", NO_HUGE),
            price(
                "split",
                self.split,
                "MADV_COLD for a page of a huge one",
                NO_HUGE,
            ),
            price(
                "reclaim_page",
                self.reclaim_page,
                "MADV_PAGEOUT of clean pages of a file",
                "no file whose pages can be reclaimed",
            ),
        ]
    }
}

fn found(mut samples: Vec<f64>, why: &'static str) -> Result<Found, &'static str> {
    let all = samples.len();
    let low = summary(samples.clone()).map_or(0.0, |all| all.low);
    // Differences may be below 0, and have no factor.
    samples.retain(|ns| low <= 0.0 || *ns <= COLD_FACTOR * low);
    let number = samples.len();
    match summary(samples) {
        Some(price) if number >= ENOUGH => Ok(Found {
            price,
            samples: number,
            left_out: all - number,
        }),
        _ => Err(why),
    }
}

/// Whether the median of differences is above 0 for certain (by its order statistics, to 95 %).
fn is_above_zero(differences: &[f64]) -> bool {
    let number = differences.len() as f64;
    let above = differences.iter().filter(|ns| **ns > 0.0).count() as f64;
    above > number / 2.0 + number.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_must_be_told_from_nothing() {
        assert!(!is_above_zero(&[]));
        let noise: Vec<f64> = (0..100).map(|n| f64::from(n) - 45.0).collect();
        assert!(!is_above_zero(&noise));
        let clear: Vec<f64> = (0..100).map(|n| f64::from(n) - 30.0).collect();
        assert!(is_above_zero(&clear));
    }

    #[test]
    fn few_samples_are_no_price() {
        let samples = Samples {
            fault: vec![100.0; ENOUGH],
            split: vec![100.0; ENOUGH - 1],
            ..Samples::default()
        };
        let prices = samples.into_prices();
        let of = |name| prices.iter().find(|price| price.name == name).unwrap();
        assert_eq!(
            of("fault").found.map(|it| (it.price.median, it.samples)),
            Ok((100.0, ENOUGH))
        );
        assert!(of("split").found.is_err() && of("compact_block").found.is_err());
    }

    #[test]
    fn blocks_that_the_host_had_to_provide_are_left_out() {
        let mut samples = vec![450.0; 20];
        samples.extend([5000.0; 30]);
        let found = found(samples, "").unwrap();
        assert_eq!(
            (found.price.high, found.samples, found.left_out),
            (450.0, 20, 30)
        );
    }

    /// Whatever this machine can measure, the numbers are of a time that such things take.
    #[test]
    fn prices_of_this_machine_are_possible() {
        let prices = kernel_prices(Duration::from_secs(2), 64 << 20, &|| false, &mut |_| {});
        assert_eq!(prices.len(), 8);
        for KernelPrice { name, found, .. } in prices {
            let Ok(Found { price, samples, .. }) = found else {
                continue;
            };
            assert!(samples >= ENOUGH, "{name}");
            assert!(
                price.low <= price.median && price.median <= price.high,
                "{name}"
            );
            assert!((1.0..1e9).contains(&price.median), "{name}: {price:?}");
        }
    }

    #[test]
    fn no_time_and_no_memory_give_no_price() {
        for (within, memory) in [(Duration::ZERO, 1 << 30), (Duration::from_secs(1), 0)] {
            let prices = kernel_prices(within, memory, &|| false, &mut |_| {});
            assert!(
                prices.iter().all(|price| price.found.is_err()),
                "{prices:?}"
            );
        }
    }
}
