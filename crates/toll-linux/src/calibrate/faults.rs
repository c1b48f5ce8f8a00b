// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of page faults: 4 KiB, huge on a warm block, huge on a cold block, and MADV_COLLAPSE.

use std::thread;
use std::time::Duration;

use toll_model::cost::Measured;
use toll_model::{PAGE, REGION};

use super::budget::Budget;
use super::clock::{cpu_ns, summary, timed};
use crate::memory::{Memory, Pages};
use crate::remote::Advice;

/// Bytes over which warm faults are measured.
const SPAN: u64 = 128 << 20;
/// Samples of cold faults and of collapses.
const SAMPLES: u64 = 24;
/// A first touch is cold if it costs this many times a warm one: the host had to provide the block.
pub(super) const COLD_FACTOR: f64 = 4.0;
/// Idle time after which blocks have returned to the host, with free page reporting.
const UNTIL_COLD: Duration = Duration::from_secs(10);

/// Measures a first touch of 4 KiB with the release of the page, over the pages of one region at a
/// time. The blocks were used shortly before.
pub(super) fn small(budget: &Budget) -> Option<Measured> {
    let pages = (REGION / PAGE) as f64;
    let touch =
        |memory: &Memory, region| Some(timed(|| memory.touch_pages(region, REGION + region)));
    let per_region = over_span(budget, Pages::Small, touch)?;
    summary(per_region.iter().map(|ns| ns / pages).collect())
}

/// Measures a first touch of 2 MiB on a recently used block with its release; `None` if faults do
/// not allocate huge pages.
pub(super) fn huge_warm(budget: &Budget) -> Option<Measured> {
    summary(over_span(budget, Pages::Huge, huge_fault)?)
}

/// Returns the CPU time of `touch` for each region of some memory, plus the region's share of
/// unmapping. The memory exceeds the caches: zeroing the same cached page repeatedly costs a
/// fraction of what programs pay.
fn over_span(
    budget: &Budget,
    pages: Pages,
    touch: impl Fn(&Memory, u64) -> Option<f64>,
) -> Option<Vec<f64>> {
    let span = SPAN.min(budget.memory / 2 / REGION * REGION);
    let warming = Memory::reserve(span, pages).ok()?;
    warming.touch_pages(0, span);
    drop(warming);
    let memory = Memory::reserve(span, pages).ok()?;
    let regions = (0..span).step_by(REGION as usize);
    let touched: Option<Vec<f64>> = regions.map(|region| touch(&memory, region)).collect();
    let touched = touched?;
    let unmapped = timed(|| drop(memory)) / touched.len() as f64;
    Some(touched.iter().map(|ns| ns + unmapped).collect())
}

/// Returns the CPU time of the first touch of a region; `None` if its last page is still not
/// present afterwards (the fault was not huge, and the next one would cost the same).
pub(super) fn huge_fault(memory: &Memory, region: u64) -> Option<f64> {
    let fault = timed(|| memory.touch(region));
    is_present(memory, region + REGION - PAGE).then_some(fault)
}

/// Whether the page at `offset` is present.
pub(super) fn is_present(memory: &Memory, offset: u64) -> bool {
    let mut present = 0u8;
    // SAFETY: queries one page of our own mapping; `present` holds the answer.
    let asked = unsafe {
        let page = memory.base().add(offset as usize);
        libc::mincore(page as *mut libc::c_void, PAGE as usize, &raw mut present)
    };
    asked == 0 && present & 1 == 1
}

/// Selects the cold ones among first touches of huge pages; `None` if there are too few.
pub(super) fn cold_among(faults: &[f64], warm: &Measured) -> Option<Measured> {
    const ENOUGH: usize = 5;
    let cold: Vec<f64> = faults
        .iter()
        .copied()
        .filter(|ns| *ns > warm.median * COLD_FACTOR)
        .collect();
    if cold.len() < ENOUGH {
        None
    } else {
        summary(cold)
    }
}

/// Waits until freed blocks have returned to the host, then touches some. `None` if there is no
/// time for it, or if no touch costs more.
pub(super) fn huge_cold(budget: &Budget, warm: &Measured) -> Option<Measured> {
    if !budget.allows(UNTIL_COLD.as_secs_f64() + 1.0) {
        return None;
    }
    thread::sleep(UNTIL_COLD);
    let memory = Memory::reserve(SAMPLES * 4 * REGION, Pages::Huge).ok()?;
    let faults: Vec<f64> = (0..SAMPLES * 4)
        .take_while(|_| !budget.is_over())
        .filter_map(|region| huge_fault(&memory, region * REGION))
        .collect();
    cold_among(&faults, warm)
}

/// Measures MADV_COLLAPSE of a region populated with 4 KiB pages, into any free block (the blocks
/// are kept, so each sample uses another one).
pub(super) fn collapse(budget: &Budget) -> Option<Measured> {
    let memory = Memory::reserve(SAMPLES * REGION, Pages::Small).ok()?;
    memory.touch_pages(0, SAMPLES * REGION);
    memory.choose(Pages::Huge).ok()?;
    let one = |region: u64| {
        let began = cpu_ns();
        memory
            .advise(region * REGION, REGION, Advice::Collapse)
            .ok()?;
        Some(cpu_ns() - began)
    };
    let samples = (0..SAMPLES).take_while(|_| !budget.is_over());
    summary(samples.filter_map(one).collect())
}
