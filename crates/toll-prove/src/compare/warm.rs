// SPDX-License-Identifier: MIT OR Apache-2.0
//! Warms up memory before every run, in the same way for all variants.
//!
//! A virtual machine may return free memory to its host, sometimes within a second. The first touch
//! of such a block then costs more than ten times that of a warm block, and which run pays depends
//! on the run before it: noise that hides gains. So more memory than the program uses is touched
//! just before it starts, and freed as the program grows, ahead of it by [`ahead`]: the kernel
//! allocates first what was freed last.
//!
//! On other machines that only takes time and evicts page cache, so [`Warming`] decides first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use toll_act::target::tree_resident;
use toll_linux::Root;
use toll_linux::calibrate::{self, available_memory};
use toll_linux::memory::{Memory, Pages};
use toll_linux::sys::{self, FreePageReporting};
use toll_model::REGION;
use toll_model::cost::CostTable;
use toll_model::units::format_ns;

/// Minimum that is free ahead of the program: what it touches within [`SLOWEST`].
const LEAST_AHEAD: u64 = 128 << 20;
/// Maximum that is free for memory held in the free lists of single CPUs.
const MOST_IN_LISTS: u64 = 512 << 20;
/// How often a growing program is checked, and one that does not grow.
const FASTEST: Duration = Duration::from_millis(1);
const SLOWEST: Duration = Duration::from_millis(8);
/// A pause is at least this multiple of the preceding check: checks take at most 5 % of a CPU.
const SHARE: u32 = 20;

/// Whether memory is warmed up before runs, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warming {
    pub on: bool,
    /// Continues "memory is warmed before each run: " or "memory is not warmed before runs: ".
    pub reason: String,
}

impl Warming {
    /// Decides for this machine, with the costs that `calibrate` measured here, if any. `cold`: set
    /// by the user.
    pub fn of_machine(cold: bool) -> Warming {
        let root = Root::system();
        let costs = calibrate::load(&calibrate::key(&root));
        Warming::decide(cold, &sys::free_page_reporting(&root), costs.as_ref())
    }

    /// Warms if idle blocks are returned to a host, or if cold blocks were measured to be
    /// expensive.
    pub fn decide(cold: bool, reporting: &FreePageReporting, costs: Option<&CostTable>) -> Warming {
        let (on, reason) = match (reporting, costs) {
            _ if cold => (false, "--cold".to_owned()),
            (FreePageReporting::On { .. }, _) => (
                true,
                "free-page reporting returns idle memory to the host".to_owned(),
            ),
            (_, Some(costs)) if costs.cold_is_dear() => (true, dear(costs)),
            (_, Some(costs)) if costs.complete => (
                false,
                "no free-page reporting, and cold blocks were measured to cost no more than \
                 warm ones"
                    .to_owned(),
            ),
            _ => (
                false,
                "no free-page reporting, and no measurement here shows cold blocks to be expensive"
                    .to_owned(),
            ),
        };
        Warming { on, reason }
    }

    /// Returns a note if costs measured since would decide differently. All comparisons of one tune
    /// are made alike, so that one can predict the other: the decision is not changed in between.
    pub(crate) fn note_of(&self, cold: bool, costs: &CostTable) -> Option<String> {
        (!self.on && !cold && costs.cold_is_dear()).then(|| {
            format!(
                "{}: later comparisons will warm memory before each run; this one did not",
                dear(costs)
            )
        })
    }

    /// One line of text.
    pub fn text(&self) -> String {
        match self.on {
            true => format!("memory is warmed before each run: {}", self.reason),
            false => format!("memory is not warmed before runs: {}", self.reason),
        }
    }
}

fn dear(costs: &CostTable) -> String {
    let [cold, warm] = [&costs.fault_2m_cold, &costs.fault_2m_warm].map(|it| format_ns(it.median));
    format!("a cold huge page was measured to cost {cold} instead of {warm}")
}

/// Touches memory before runs. Never fails: memory that is not available is not warmed.
#[derive(Debug)]
pub struct Warmer {
    on: bool,
    /// Largest resident memory of any run so far, bytes.
    largest: u64,
    /// Most memory warmed at once, bytes.
    warmed: u64,
    /// For the next run.
    pool: Option<Pool>,
}

impl Warmer {
    /// Creates a warmer that does nothing unless `on`.
    pub fn new(on: bool) -> Warmer {
        Warmer {
            on,
            largest: 0,
            warmed: 0,
            pool: None,
        }
    }

    /// Records the memory of a run, in bytes: the next ones get this much and some more.
    pub(crate) fn saw(&mut self, max_rss: u64) {
        self.largest = self.largest.max(max_rss);
    }

    /// Warms the memory that the next run is expected to use. Stops early when `stop` returns true.
    pub(crate) fn warm(&mut self, stop: impl Fn() -> bool) {
        self.pool = None;
        if self.on && self.largest > 0 {
            let bytes = wanted(self.largest, available_memory());
            self.pool = Pool::touched(bytes, ahead(self.largest), stop);
        }
        if let Some(pool) = &mut self.pool {
            self.warmed = self.warmed.max(pool.bytes);
            pool.free_up_to(pool.ahead);
        }
    }

    /// Frees the warmed memory while the process and its children grow.
    pub(crate) fn feed(&mut self, pid: u32) -> Feeder {
        Feeder::start(self.pool.take(), pid)
    }

    /// The most memory warmed before a run, bytes.
    pub(crate) fn warmed(&self) -> u64 {
        self.warmed
    }
}

/// How far the freed memory is ahead of the program, for runs of up to `largest` bytes.
///
/// Not all freed memory reaches the program: the kernel keeps some, about 40 MiB, in a free list of
/// the CPU that freed it, and these lists grow by what a run of 4 KiB pages allocates and frees. A
/// program on another CPU then gets blocks that were not warmed. With 128 MiB for every size, runs
/// with huge pages paid for 20 to 100 cold blocks when they came after a run of 512 MiB of 4 KiB
/// pages.
fn ahead(largest: u64) -> u64 {
    LEAST_AHEAD + largest.min(MOST_IN_LISTS)
}

/// A quarter more than the largest run had, plus the memory freed [`ahead`] of it, in whole
/// regions; at most half of the available memory.
fn wanted(largest: u64, available: u64) -> u64 {
    let ample = largest.saturating_add(largest / 4);
    let ample = ample.saturating_add(ahead(largest)).div_ceil(REGION);
    ample.min(available / 2 / REGION) * REGION
}

/// Touched memory of this process.
#[derive(Debug)]
struct Pool {
    memory: Memory,
    /// The touched bytes, from the start.
    bytes: u64,
    /// The part of it that is free again, bytes.
    freed: u64,
    /// How far that is ahead of the program, bytes.
    ahead: u64,
}

impl Pool {
    /// Maps `bytes` with advice for huge pages (4 KiB pages are accepted), and touches every 4 KiB
    /// page until `stop` returns true. Returns `None` if there is no room.
    fn touched(bytes: u64, ahead: u64, stop: impl Fn() -> bool) -> Option<Pool> {
        let memory = Memory::new(bytes).ok()?;
        let _ = memory.choose(Pages::Huge);
        let mut touched = 0;
        while touched < bytes && !stop() {
            memory.touch_pages(touched, touched + REGION);
            touched += REGION;
        }
        Some(Pool {
            memory,
            bytes: touched,
            freed: 0,
            ahead,
        })
    }

    /// Frees regions up to `bytes`, or all.
    fn free_up_to(&mut self, bytes: u64) {
        let end = bytes.min(self.bytes) / REGION * REGION;
        if end > self.freed {
            self.memory.free(self.freed, end);
            self.freed = end;
        }
    }
}

/// A thread that frees a pool as a program grows, and all of it when dropped.
#[derive(Debug)]
pub struct Feeder {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Feeder {
    fn start(pool: Option<Pool>, pid: u32) -> Feeder {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let thread = pool.map(|mut pool| std::thread::spawn(move || feed(&mut pool, pid, &seen)));
        Feeder { over, thread }
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn feed(pool: &mut Pool, pid: u32, over: &AtomicBool) {
    let root = Root::system();
    let mut pause = FASTEST;
    while pool.freed < pool.bytes && !over.load(Relaxed) {
        let (begun, before) = (Instant::now(), pool.freed);
        let resident = tree_resident(&root, pid);
        pool.free_up_to(resident.saturating_add(pool.ahead));
        pause = match pool.freed > before {
            true => FASTEST,
            false => (pause * 2).min(SLOWEST),
        };
        // Listing the children of thousands of threads takes time.
        let looking = begun.elapsed();
        std::thread::sleep(pause.max(looking * SHARE));
    }
}

#[cfg(test)]
mod tests;
