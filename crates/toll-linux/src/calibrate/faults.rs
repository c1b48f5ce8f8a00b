// SPDX-License-Identifier: MIT OR Apache-2.0
//! What it costs to get a page: faults small, huge and warm, huge and cold, and
//! MADV_COLLAPSE.

use std::thread;
use std::time::Duration;

use toll_model::{PAGE, REGION};

use super::chase::{cpu_ns, summary};
use super::{Budget, Measured};
use crate::hand::Advice;
use crate::memory::{Memory, Pages};

/// Bytes over which warm faults are measured.
const SPAN: u64 = 128 << 20;
/// Samples of each price of a cold block and a collapse.
const SAMPLES: u64 = 24;
/// A first touch this many times dearer than a warm one was a block that the host had to provide.
pub(super) const COLD_FACTOR: f64 = 4.0;
/// Blocks idle for so long have gone back to the host, where there is free page reporting.
const UNTIL_COLD: Duration = Duration::from_secs(10);

/// A first touch of 4 KiB and giving the page back, measured over the pages of a region at a
/// time. The blocks were in use just before.
pub(super) fn small(budget: &Budget) -> Option<Measured> {
    let pages = (REGION / PAGE) as f64;
    let touch = |memory: &Memory, region| {
        let began = cpu_ns();
        memory.touch_pages(region, REGION + region);
        Some(cpu_ns() - began)
    };
    let per_region = over_span(budget, Pages::Small, touch)?;
    summary(per_region.iter().map(|ns| ns / pages).collect())
}

/// A first touch of 2 MiB whose block was in use just before, and giving it back; `None`
/// where no huge page comes at a fault.
pub(super) fn huge_warm(budget: &Budget) -> Option<Measured> {
    summary(over_span(budget, Pages::Huge, huge_fault)?)
}

/// CPU time that `touch` takes for each region of some memory, and its part in the time that
/// unmapping takes. The memory is more than caches hold: a page that is zeroed there again
/// and again costs a fraction of what programs pay.
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
    let began = cpu_ns();
    drop(memory);
    let unmapped = (cpu_ns() - began) / touched.len() as f64;
    Some(touched.iter().map(|ns| ns + unmapped).collect())
}

/// CPU time of the first touch of a region; `None` if its last page is still missing
/// then (a second fault that costs as much as any, so it was not huge).
pub(super) fn huge_fault(memory: &Memory, region: u64) -> Option<f64> {
    let began = cpu_ns();
    memory.touch(region);
    let fault = cpu_ns() - began;
    is_present(memory, region + REGION - PAGE).then_some(fault)
}

/// Whether the page at `offset` is there.
pub(super) fn is_present(memory: &Memory, offset: u64) -> bool {
    let mut present = 0u8;
    // SAFETY: asks about one page of our own mapping; `present` takes the answer.
    let asked = unsafe {
        let page = memory.base().add(offset as usize);
        libc::mincore(page as *mut libc::c_void, PAGE as usize, &raw mut present)
    };
    asked == 0 && present & 1 == 1
}

/// The cold ones among first touches of huge pages, if there are enough to speak of.
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

/// Waits until freed blocks have gone back to the host, then touches some. `None`
/// without time for it, or where nothing gets dearer.
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

/// MADV_COLLAPSE of a region populated with small pages, into whatever block is free
/// (the blocks are kept, so each is another).
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
