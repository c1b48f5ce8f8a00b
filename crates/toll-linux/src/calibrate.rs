// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures this machine's cost table.
//!
//! All costs are CPU time of the measuring thread. Costs that could not be measured for lack of
//! time or memory, or because of the machine's settings, are filled in from the defaults, scaled by
//! the measured ones, and the table is marked incomplete.

mod budget;
mod cache;
mod chase;
mod clock;
mod defaults;
mod events;
mod faults;
mod grid;
mod kernel;
mod reclaim;
mod tail;

use std::time::{Duration, Instant};

use toll_model::cost::{CostTable, Measured};

use self::budget::Budget;
use crate::{Root, sys};

pub use cache::{Key, cache_directory, cache_path, key, load, store};
pub use defaults::default_costs;
pub use kernel::{Found, KernelCost, kernel_costs};
pub use tail::{Tail, Tails, fault_tails};

/// Measures this machine's costs within a time limit, using less than half of the available memory.
/// `progress` receives a line for each step.
pub fn calibrate(within: Duration, progress: &mut dyn FnMut(&str)) -> CostTable {
    let memory = available_memory() / 2;
    calibrate_with(within, memory, &|| false, progress)
}

/// Like [`calibrate`], with at most `memory` bytes. Ends early, with the results so far, as soon as
/// `stop` returns true.
pub fn calibrate_with(
    within: Duration,
    memory: u64,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(&str),
) -> CostTable {
    let budget = Budget {
        began: Instant::now(),
        within,
        memory,
        stop,
    };
    progress("page faults");
    let small = faults::small(&budget);
    let warm = faults::huge_warm(&budget);
    progress("collapse");
    let collapse = faults::collapse(&budget);
    progress("shootdowns");
    let events = events::measure(&budget);
    let grid = grid::measure(&budget, progress);
    let cold = warm.and_then(|warm| cold_cost(&budget, &warm, &grid.huge_faults, progress));
    let mut table = default_costs();
    table.complete = grid.complete && [small, warm, cold, collapse].iter().all(Option::is_some);
    table.walk = defaults::fill_in(grid.walk, &table.walk);
    table.fault_4k = small.unwrap_or(table.fault_4k);
    defaults::set_huge_faults(&mut table, warm, cold);
    table.collapse = collapse.unwrap_or(table.collapse);
    // Some machines cannot measure them (a single CPU): they do not make a table incomplete.
    table.events = events;
    table
}

/// Returns the cost of a cold huge page: that of a warm one if blocks do not get cold.
fn cold_cost(
    budget: &Budget,
    warm: &Measured,
    faults: &[f64],
    progress: &mut dyn FnMut(&str),
) -> Option<Measured> {
    faults::cold_among(faults, warm).or_else(|| match sys::free_page_reporting(&Root::system()) {
        sys::FreePageReporting::On { .. } => {
            progress("cold blocks");
            faults::huge_cold(budget, warm)
        }
        _ => Some(*warm),
    })
}

/// Returns the bytes available to this process, limited by the machine and by its control group.
pub fn available_memory() -> u64 {
    let root = Root::system();
    let available = sys::meminfo(&root).map_or(0, |info| info.available);
    sys::memory_limit(&root).map_or(available, |limit| {
        available.min(limit.saturating_sub(sys::memory_in_use(&root).unwrap_or(0)))
    })
}
