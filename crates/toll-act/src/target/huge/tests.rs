// SPDX-License-Identifier: MIT OR Apache-2.0

use std::process::{Command, Stdio};

use super::*;

const GIB: u64 = 1 << 30;

/// A process that grows at a constant rate up to its size, partly huge, with a simulated clock.
struct Told {
    clock: Duration,
    spent: Duration,
    size: u64,
    /// Bytes per second.
    growth: f64,
    /// Share of the memory that is huge.
    huge: f64,
    /// Seconds to walk a GiB of 4 KiB pages.
    walk: f64,
}

impl Told {
    fn new(size: u64, huge: f64) -> Told {
        Told {
            clock: Duration::ZERO,
            spent: Duration::ZERO,
            size,
            growth: GIB as f64,
            huge,
            walk: 0.02,
        }
    }

    fn there(&self) -> f64 {
        (self.clock.as_secs_f64() * self.growth).min(self.size as f64)
    }

    fn takes(&mut self, seconds: f64) {
        let cost = Duration::from_secs_f64(seconds);
        self.clock += cost;
        self.spent += cost;
    }
}

impl Tree for Told {
    fn now(&self) -> Duration {
        self.clock
    }
    fn resident(&mut self) -> u64 {
        self.takes(5e-6);
        self.there() as u64
    }
    fn huge(&mut self) -> u64 {
        let small = self.there() * (1.0 - self.huge);
        self.takes(1e-5 + small / GIB as f64 * self.walk);
        (self.there() * self.huge) as u64
    }
}

/// Simulates some seconds. Returns the sampler and the largest share of a CPU that it had used
/// at the end of any second.
fn run(told: Told, sampling: Sampling, seconds: u64) -> (HugeSampler<Told>, f64) {
    let mut sampler = HugeSampler::new(told, sampling).unwrap();
    let mut largest = 0.0f64;
    for second in 1..=seconds {
        let end = Duration::from_secs(second);
        while sampler.tree.clock < end {
            let pause = sampler.tick();
            sampler.tree.clock += pause.min(end.saturating_sub(sampler.tree.clock));
        }
        let share = sampler.tree.spent.as_secs_f64() / sampler.tree.clock.as_secs_f64();
        largest = largest.max(share);
    }
    (sampler, largest)
}

#[test]
fn sparing_takes_no_more_than_its_share_at_any_size() {
    for size in [1 << 20, GIB / 4, GIB, 10 * GIB, 100 * GIB, 1000 * GIB] {
        for huge in [0.0, 0.5, 1.0] {
            let (_, share) = run(Told::new(size, huge), Sampling::Sparing, 600);
            assert!(
                share <= SPARING * 1.01,
                "{size} bytes, {huge} huge: {share}"
            );
        }
    }
}

#[test]
fn sparing_learns_that_a_machine_is_slower() {
    let slow = Told {
        walk: 0.1,
        ..Told::new(10 * GIB, 0.0)
    };
    // The cost of the first sample is unknown in advance.
    let (sampler, share) = run(slow, Sampling::Sparing, 1200);
    let end = sampler.tree.spent.as_secs_f64() / sampler.tree.clock.as_secs_f64();
    assert!(
        end <= SPARING * 1.01 && share < 0.05,
        "{end} at the end, {share} at most"
    );
    assert!(sampler.sampled().samples >= 4, "{:?}", sampler.sampled());
}

#[test]
fn both_kinds_see_what_is_there() {
    for sampling in [Sampling::Sparing, Sampling::Ample] {
        let (sampler, _) = run(Told::new(4 * GIB, 0.5), sampling, 600);
        let got = sampler.sampled();
        assert_eq!(got.peak, 2 * GIB, "{sampling:?}");
        let expected = 600.0 * 2.0 * GIB as f64;
        assert!(
            (got.byte_seconds / expected - 1.0).abs() < 0.05,
            "{sampling:?}: {got:?}"
        );
    }
}

#[test]
fn ample_samples_a_short_run_of_a_large_program() {
    let (sampler, share) = run(Told::new(8 * GIB, 0.9), Sampling::Ample, 8);
    assert!(sampler.sampled().peak > 5 * GIB, "{:?}", sampler.sampled());
    assert!(share < 0.15, "{share}");
    let (sparing, _) = run(Told::new(8 * GIB, 0.0), Sampling::Sparing, 8);
    assert_eq!(sparing.sampled(), Sampled::default());
}

#[test]
fn off_is_no_sampler() {
    assert!(HugeSampler::new(Told::new(GIB, 0.0), Sampling::Off).is_none());
}

/// In this test process, threads of the harness fork, not the main thread.
#[test]
fn a_child_of_a_thread_belongs_to_the_tree() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let tree = proc::tree(&Root::system(), std::process::id());
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(
        tree.contains(&child.id()),
        "{} is not in {tree:?}",
        child.id()
    );
}
