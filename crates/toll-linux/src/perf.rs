// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes whether the CPU samples memory accesses with data address and TLB level. It takes
//! samples: guests often show a PMU that never delivers one. [`counting`] counts events without samples.

pub mod counting;
mod event;
mod sampler;

use std::fmt;
use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

pub use event::{Event, has_pmu, memory_event};

use crate::Root;
use sampler::{Sample, Sampler};

/// Result of the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerfAbility {
    /// Samples carry data addresses and TLB levels.
    Full { event: String, samples: u64 },
    /// Samples carry data addresses only.
    AddressesOnly { event: String, samples: u64 },
    /// No such samples.
    Missing { reason: String, fix: String },
}

impl PerfAbility {
    /// Whether a profile can be recorded with it.
    pub fn usable(&self) -> bool {
        matches!(self, PerfAbility::Full { .. })
    }
}

impl fmt::Display for PerfAbility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PerfAbility::Full { event, samples } => {
                write!(
                    f,
                    "{event}: data addresses and TLB levels ({samples} samples in the probe)"
                )
            }
            PerfAbility::AddressesOnly { event, samples } => {
                write!(
                    f,
                    "{event}: data addresses without TLB levels ({samples} samples in the probe)"
                )
            }
            PerfAbility::Missing { reason, .. } => f.write_str(reason),
        }
    }
}

/// Samples this process's own accesses for at most a second.
pub fn probe() -> PerfAbility {
    probe_at(&Root::system())
}

/// Like [`probe`]; on fixtures only the files are evaluated.
pub fn probe_at(root: &Root) -> PerfAbility {
    let Some(event) = memory_event(root) else {
        return no_event(root);
    };
    if !root.is_system() {
        return missing(
            format!("{}: not probed", event.name),
            "run it on the machine itself",
        );
    }
    let sampler = match Sampler::open(&event) {
        Ok(sampler) => sampler,
        Err(error) => return refused(root, &event, &error),
    };
    let memory = vec![1u8; FOOTPRINT];
    let own = memory.as_ptr() as u64..memory.as_ptr() as u64 + FOOTPRINT as u64;
    let began = Instant::now();
    let mut found: Vec<Sample> = Vec::new();
    while found.len() < ENOUGH && began.elapsed() < Duration::from_secs(1) {
        sampler.during(|| touch(&memory));
        found = sampler.samples();
        found.retain(|sample| own.contains(&sample.address));
    }
    judge(event.name, &found)
}

/// Bytes that the probe accesses: more than any TLB reaches with 4 KiB pages.
const FOOTPRINT: usize = 64 << 20;
/// Number of samples that is sufficient.
const ENOUGH: usize = 32;

/// Reads lines of `memory` in random order.
fn touch(memory: &[u8]) {
    let mut state = 1u64;
    let mut sum = 0u64;
    for _ in 0..1 << 18 {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        sum += u64::from(memory[(state >> 32) as usize % memory.len()]);
    }
    black_box(sum);
}

fn judge(event: String, found: &[Sample]) -> PerfAbility {
    let samples = found.len() as u64;
    let levels = found.iter().filter(|sample| sample.has_tlb_level()).count();
    match (samples, levels) {
        (0, _) => missing(
            format!("{event} opens, but no sample of our own accesses came within a second"),
            "a machine or instance type with a PMU that samples memory accesses",
        ),
        (_, 0) => PerfAbility::AddressesOnly { event, samples },
        _ => PerfAbility::Full { event, samples },
    }
}

fn no_event(root: &Root) -> PerfAbility {
    let guest = root
        .read("/proc/cpuinfo")
        .is_ok_and(|text| text.contains("hypervisor"));
    let reason = match (has_pmu(root), guest) {
        (true, _) => "the PMU has no event that samples memory accesses",
        (false, true) => "this virtual machine has no PMU",
        (false, false) => "the kernel exposes no PMU for this CPU",
    };
    missing(
        reason.to_owned(),
        "a machine or instance type with a PMU; otherwise use the simulator or accessed bits",
    )
}

fn refused(root: &Root, event: &Event, error: &io::Error) -> PerfAbility {
    let name = &event.name;
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let level = root.line("/proc/sys/kernel/perf_event_paranoid");
            let level = level.unwrap_or_else(|| "unknown".to_owned());
            missing(
                format!("{name}: not permitted (kernel.perf_event_paranoid is {level})"),
                "sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON",
            )
        }
        Some(libc::ENOSYS) => missing(
            format!("{name}: perf_event_open is blocked (a container's seccomp profile?)"),
            "allow perf_event_open in the container",
        ),
        _ => missing(
            format!("{name}: {error}"),
            "a machine with a PMU that samples memory accesses",
        ),
    }
}

fn missing(reason: String, fix: &str) -> PerfAbility {
    PerfAbility::Missing {
        reason,
        fix: fix.to_owned(),
    }
}
