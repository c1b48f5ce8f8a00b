// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of events that `stat` counts: TLB shootdowns, faults that read a file, and reclaim.
//!
//! A shootdown is caused by a thread that unmaps a page while another thread of the process runs on
//! another CPU. Each round has three phases of the same work: the other thread runs and nothing is
//! unmapped, it runs while pages are unmapped, and it sleeps while pages are unmapped (its CPU is
//! then not interrupted). The sender's cost is the difference of the last two, for the thread that
//! unmaps; the receiver's is the difference of the first two, for the other thread. A round counts
//! only if the other thread ran during all of the second phase: while a third thread has the CPU,
//! there is nothing to interrupt.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use toll_model::PAGE;
use toll_model::cost::{Measured, MeasuredEvents};

use super::budget::Budget;
use super::clock::{cpu_ns, summary, timed};
use super::reclaim::Reclaim;
use crate::memory::{Memory, Pages};

/// Rounds of the three phases that count.
const ROUNDS: usize = 60;
/// Rounds at most. On a busy machine the other thread often loses its CPU.
const ATTEMPTS: usize = 600;
/// Pages unmapped in a phase. A phase of 0.5 ms is mostly shorter than a time slice.
const UNMAPS: u64 = 60;
/// Smallest share of a phase in which the other thread has its CPU, for a round that counts. The
/// rest is one chunk of its work, and interrupts that are not CPU time of the thread.
const THROUGHOUT: f64 = 0.9;
/// Batches of file pages that are read and reclaimed.
const BATCHES: usize = 32;
/// Minimum number of samples for a cost.
const ENOUGH: usize = 8;
/// Time after which a phase is given up: the other thread has no CPU.
const PATIENCE: Duration = Duration::from_millis(200);

/// Measures what can be measured within the limits.
pub(super) fn measure(budget: &Budget) -> MeasuredEvents {
    let (sent, received) = shootdowns(budget);
    let (faults, reclaims) = file_pages(budget);
    MeasuredEvents {
        shootdown_sent: of_samples(sent),
        shootdown_received: of_samples(received),
        fault_major: of_samples(faults),
        reclaim_page: of_samples(reclaims),
    }
}

/// The summary of enough samples. A difference below 0 is noise.
fn of_samples(samples: Vec<f64>) -> Option<Measured> {
    let samples: Vec<f64> = samples.into_iter().map(|ns| ns.max(0.0)).collect();
    match samples.len() {
        ENOUGH.. => summary(samples),
        _ => None,
    }
}

/// Costs per page of faults that read a file, and of its reclaim.
fn file_pages(budget: &Budget) -> (Vec<f64>, Vec<f64>) {
    let (mut faults, mut reclaims) = (Vec::new(), Vec::new());
    let Some(mut file) = Reclaim::new() else {
        return (faults, reclaims);
    };
    for _ in 0..BATCHES {
        if budget.is_over() {
            break;
        }
        if let Some((reclaim, fault)) = file.page_and_fault() {
            reclaims.push(reclaim);
            faults.push(fault);
        }
    }
    (faults, reclaims)
}

/// Costs of a shootdown for its sender and for its receiver. Empty with a single CPU.
fn shootdowns(budget: &Budget) -> (Vec<f64>, Vec<f64>) {
    let none = (Vec::new(), Vec::new());
    let Ok(allowed) = sched_getaffinity(None) else {
        return none;
    };
    let Some([here, there]) = two_of(&allowed) else {
        return none;
    };
    let Ok(memory) = Memory::reserve(toll_model::REGION, Pages::Small) else {
        return none;
    };
    let other = Other::default();
    pin(here);
    let samples = thread::scope(|scope| {
        let running = scope.spawn(|| other.run(there));
        let samples = rounds(budget, memory, &other, running.thread());
        other.ends.store(true, Relaxed);
        running.thread().unpark();
        samples
    });
    // The thread is the caller's.
    let _ = sched_setaffinity(None, &allowed);
    samples
}

fn rounds(
    budget: &Budget,
    mut memory: Memory,
    other: &Other,
    thread: &Thread,
) -> (Vec<f64>, Vec<f64>) {
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for _ in 0..ATTEMPTS {
        if sent.len() == ROUNDS || budget.is_over() {
            break;
        }
        other.resume(thread);
        let Some(calm) = other.during(spin) else {
            break;
        };
        let mut with = 0.0;
        let Some(disturbed) = other.during(|| with = unmaps(&mut memory)) else {
            break;
        };
        if !disturbed.is_throughout() {
            continue;
        }
        other.pause();
        let without = unmaps(&mut memory);
        sent.push((with - without) / UNMAPS as f64);
        let more = disturbed.per_chunk() - calm.per_chunk();
        received.push(more * disturbed.chunks / UNMAPS as f64);
    }
    (sent, received)
}

/// Touches and unmaps a page several times. Returns the CPU time.
fn unmaps(memory: &mut Memory) -> f64 {
    timed(|| {
        for _ in 0..UNMAPS {
            memory.touch(0);
            memory.free(0, PAGE);
        }
    })
}

/// Runs as long as some chunks of the other thread take, without a system call.
fn spin() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_micros(500) {
        std::hint::spin_loop();
    }
}

/// The thread that is interrupted. It works in chunks of equal length.
#[derive(Default)]
struct Other {
    ends: AtomicBool,
    pauses: AtomicBool,
    is_paused: AtomicBool,
    chunks: AtomicU64,
    /// CPU time up to the end of that chunk, ns.
    cpu: AtomicU64,
}

/// Work of the other thread.
struct Work {
    chunks: f64,
    /// CPU time of the chunks, ns.
    cpu: f64,
    /// Time that passed, ns.
    elapsed: f64,
}

impl Work {
    fn per_chunk(&self) -> f64 {
        self.cpu / self.chunks
    }

    /// Whether the thread had its CPU all the time.
    fn is_throughout(&self) -> bool {
        self.cpu >= self.elapsed * THROUGHOUT
    }
}

impl Other {
    fn run(&self, cpu: usize) {
        pin(cpu);
        while !self.ends.load(Relaxed) {
            if self.pauses.load(Relaxed) {
                self.is_paused.store(true, Relaxed);
                thread::park();
                continue;
            }
            self.is_paused.store(false, Relaxed);
            chunk();
            self.cpu.store(cpu_ns() as u64, Relaxed);
            self.chunks.fetch_add(1, Relaxed);
        }
    }

    /// Wakes the thread.
    fn resume(&self, thread: &Thread) {
        self.pauses.store(false, Relaxed);
        thread.unpark();
    }

    /// Returns once the thread is about to sleep.
    fn pause(&self) {
        self.pauses.store(true, Relaxed);
        let begun = Instant::now();
        while !self.is_paused.load(Relaxed) && begun.elapsed() < PATIENCE {
            thread::yield_now();
        }
        // It has set the flag before the system call that makes its CPU idle.
        thread::sleep(Duration::from_micros(100));
    }

    /// Work of the thread during `what`, by whole chunks; `None` if it does not run.
    fn during(&self, what: impl FnOnce()) -> Option<Work> {
        let begun = self.next_chunk()?;
        let clock = Instant::now();
        what();
        let ended = self.next_chunk()?;
        let work = Work {
            chunks: (ended.0 - begun.0) as f64,
            cpu: ended.1.saturating_sub(begun.1) as f64,
            elapsed: clock.elapsed().as_nanos() as f64,
        };
        (work.chunks > 0.0).then_some(work)
    }

    /// Waits for the end of a chunk. Returns the number of chunks and the CPU time so far.
    fn next_chunk(&self) -> Option<(u64, u64)> {
        let seen = self.chunks.load(Relaxed);
        let begun = Instant::now();
        while self.chunks.load(Relaxed) == seen {
            if begun.elapsed() > PATIENCE {
                return None;
            }
            std::hint::spin_loop();
        }
        Some((self.chunks.load(Relaxed), self.cpu.load(Relaxed)))
    }
}

/// A chunk of work: about 10 us of dependent multiplications, which touch no memory.
fn chunk() {
    let mut value = 1u64;
    for _ in 0..8_000 {
        value = std::hint::black_box(value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
}

/// Two CPUs of a set.
fn two_of(allowed: &CpuSet) -> Option<[usize; 2]> {
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    Some([cpus.next()?, cpus.next()?])
}

/// Keeps this thread on a CPU. Without permission, the scheduler spreads both threads.
fn pin(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    let _ = sched_setaffinity(None, &only);
}

#[cfg(test)]
mod tests;
