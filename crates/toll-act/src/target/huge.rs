// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples the huge-page-backed memory of a process tree.
//!
//! The only counter that needs no privileges is `smaps_rollup`. To read it, the kernel walks the
//! page tables: about 20 ms per GiB of 4 KiB pages, almost nothing for huge pages, while the
//! process's memory is locked against changes. Sampling therefore costs a run with huge pages less
//! than one without: timed runs must not be sampled ([`Sampling::Off`]), others rarely.

use std::time::{Duration, Instant};

use toll_linux::{Root, proc};
use toll_model::PAGE;

/// The share of time that sampling may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sampling {
    #[default]
    Off,
    /// At most 0.5 % of a CPU at any size of the process. A sample is taken once the elapsed time
    /// allows its expected cost, so a short run of a large program has none.
    Sparing,
    /// A tenth of a CPU, from the start: for runs that are not timed.
    Ample,
}

/// The samples of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sampled {
    /// Number of samples; if it is 0, the other fields are 0 and meaningless.
    pub samples: u64,
    /// The largest sample of huge-page-backed memory, bytes.
    pub peak: u64,
    /// Huge-page-backed memory over time, byte seconds.
    pub byte_seconds: f64,
}

/// Minimum time between two scans.
const SHORTEST: Duration = Duration::from_millis(20);
/// Initial estimate in seconds per byte in 4 KiB pages, until it is measured. Measured: 20 ms per
/// GiB on a virtual machine with nested paging.
const PRICE: f64 = 0.025 / (1u64 << 30) as f64;
/// Share of a CPU for [`Sampling::Sparing`]. The program may pay more than that: page faults wait for
/// the sample, and it evicts page tables from the caches. With 0.01 the program of
/// `benches/sampler/run.py` took 2.1 % longer (90 % interval 0.5 to 4.2).
const SPARING: f64 = 0.005;
/// Share of a CPU for [`Sampling::Ample`].
const AMPLE: f64 = 0.1;

/// A process tree and a clock; mocked in tests.
pub(super) trait Tree {
    /// Time since a fixed moment.
    fn now(&self) -> Duration;
    /// Resident memory, bytes. Cheap at any size.
    fn resident(&mut self) -> u64;
    /// Huge-page-backed memory, bytes. Takes time in proportion to the memory in 4 KiB pages.
    fn huge(&mut self) -> u64;
}

/// A process and its descendants.
#[derive(Debug)]
pub(super) struct Processes {
    pid: u32,
    begun: Instant,
    root: Root,
}

impl Processes {
    pub(super) fn of(pid: u32) -> Processes {
        Processes {
            pid,
            begun: Instant::now(),
            root: Root::system(),
        }
    }
}

impl Tree for Processes {
    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn resident(&mut self) -> u64 {
        tree_resident(&self.root, self.pid)
    }

    fn huge(&mut self) -> u64 {
        let tree = proc::tree(&self.root, self.pid).into_iter();
        let each = tree.map(|pid| huge(&self.root, pid));
        // The processes of a tree usually share one memory: it counts once.
        let (own, shared) = each.fold((0, 0), |(own, shared), one| {
            (own + one.0, shared.max(one.1))
        });
        own + shared
    }
}

/// Reads the huge-page-backed memory of a process tree, within the allowed share of time.
#[derive(Debug)]
pub(super) struct HugeSampler<T> {
    tree: T,
    /// The share to spend: of the total time, or of the time since the last sample.
    share: f64,
    /// Whether a sample waits until its cost is allowed.
    saves: bool,
    begun: Duration,
    /// Earliest time of the next scan.
    next: Duration,
    /// Time spent on scans so far.
    spent: Duration,
    /// Seconds per byte in 4 KiB pages.
    seconds_per_byte: f64,
    last: Duration,
    last_bytes: u64,
    sampled: Sampled,
}

impl<T: Tree> HugeSampler<T> {
    /// `None` for [`Sampling::Off`].
    pub(super) fn new(tree: T, sampling: Sampling) -> Option<HugeSampler<T>> {
        let (share, saves) = match sampling {
            Sampling::Off => return None,
            Sampling::Sparing => (SPARING, true),
            Sampling::Ample => (AMPLE, false),
        };
        let now = tree.now();
        Some(HugeSampler {
            tree,
            share,
            saves,
            begun: now,
            next: now + SHORTEST,
            spent: Duration::ZERO,
            seconds_per_byte: PRICE,
            last: now,
            last_bytes: 0,
            sampled: Sampled::default(),
        })
    }

    pub(super) fn sampled(&self) -> Sampled {
        self.sampled
    }

    /// Takes a sample if it is due. Returns the time until the next scan.
    pub(super) fn tick(&mut self) -> Duration {
        let begun = self.tree.now();
        if begun >= self.next {
            let small = self.tree.resident().saturating_sub(self.last_bytes);
            let expected = Duration::from_secs_f64(small as f64 * self.seconds_per_byte);
            let affordable = !self.saves || self.affordable_at(expected) <= begun;
            if affordable {
                self.sample(begun, small);
            }
            self.spent += self.tree.now().saturating_sub(begun);
            let due = match affordable && !self.saves {
                true => self.tree.now() + self.spent_since(begun).div_f64(self.share),
                false => self.affordable_at(if affordable { Duration::ZERO } else { expected }),
            };
            self.next = due.max(self.tree.now() + SHORTEST);
        }
        self.next.saturating_sub(self.tree.now())
    }

    /// The time from which an additional `cost` stays within the share of the total time.
    fn affordable_at(&self, cost: Duration) -> Duration {
        self.begun + (self.spent + cost).div_f64(self.share)
    }

    fn spent_since(&self, begun: Duration) -> Duration {
        self.tree.now().saturating_sub(begun)
    }

    fn sample(&mut self, begun: Duration, small: u64) {
        let bytes = self.tree.huge();
        let cost = self.spent_since(begun);
        // Only 4 KiB pages cost time; a small amount gives no useful estimate.
        if small >= 64 << 20 {
            self.seconds_per_byte = self.seconds_per_byte.max(cost.as_secs_f64() / small as f64);
        }
        let since = begun.saturating_sub(self.last).as_secs_f64();
        self.sampled.byte_seconds += (bytes as f64 + self.last_bytes as f64) / 2.0 * since;
        self.sampled.peak = self.sampled.peak.max(bytes);
        self.sampled.samples += 1;
        (self.last, self.last_bytes) = (begun, bytes);
    }
}

/// Huge-page-backed memory of a process in bytes: its own (THP and hugetlb), and shared memory. 0 if
/// it has ended.
fn huge(root: &Root, pid: u32) -> (u64, u64) {
    let text = root.read(format!("/proc/{pid}/smaps_rollup"));
    let text = text.unwrap_or_default();
    let bytes = |name: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
        value.and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) << 10
    };
    let own = bytes("AnonHugePages:") + bytes("Private_Hugetlb:");
    (own, bytes("ShmemPmdMapped:"))
}

/// Resident memory of a process and its descendants in bytes.
pub fn tree_resident(root: &Root, pid: u32) -> u64 {
    let tree = proc::tree(root, pid).into_iter();
    tree.map(|pid| resident(root, pid)).sum()
}

/// Resident memory of a process in bytes; 0 if it has ended.
fn resident(root: &Root, pid: u32) -> u64 {
    let statm = root.read(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE
}

#[cfg(test)]
mod tests;
