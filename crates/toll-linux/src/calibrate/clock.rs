// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time, and the summary of its samples.

use toll_model::cost::Measured;

/// Returns the CPU time of this thread in ns; time of other threads on the CPU does not count.
pub(super) fn cpu_ns() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Returns the CPU time of an operation in ns.
pub(super) fn timed(what: impl FnOnce()) -> f64 {
    let began = cpu_ns();
    what();
    cpu_ns() - began
}

/// Returns the median with the 10th and 90th percentile; `None` for an empty slice.
pub(super) fn summary(mut samples: Vec<f64>) -> Option<Measured> {
    samples.sort_by(f64::total_cmp);
    let at = |share: f64| samples[((samples.len() - 1) as f64 * share).round() as usize];
    (!samples.is_empty()).then(|| Measured {
        median: at(0.5),
        low: at(0.1),
        high: at(0.9),
    })
}
