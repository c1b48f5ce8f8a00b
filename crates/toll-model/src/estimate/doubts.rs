// SPDX-License-Identifier: MIT OR Apache-2.0
//! Uncertainty of counts: of their source, and of sampling.

use super::chunk::Chunk;
use super::range::{Doubt, Z80};
use crate::profile::Source;

/// Returns the possible ratio of a source's counts to the misses of the CPU.
pub(super) fn source_doubt(source: Source) -> Doubt {
    let (low, high) = match source {
        // Modelled replacement, no prefetch of translations, different code paths, and costs that
        // were measured with a synthetic loop.
        Source::Sim => (0.5, 2.0),
        // Skid, and TLB levels that CPUs report differently; never compared with gains on such a
        // CPU, so the range is wider than that of the simulator.
        Source::Perf => (0.4, 2.5),
        // A page that was touched between two samples may have missed any number of times.
        Source::Accessed => (0.1, 100.0),
    };
    Doubt { low, high }
}

/// Returns the possible error of a source at one place relative to another.
pub(super) fn place_doubt(source: Source) -> Doubt {
    match source {
        Source::Sim | Source::Perf => source_doubt(source),
        Source::Accessed => Doubt {
            low: 0.1,
            high: 5.0,
        },
    }
}

/// Returns the sampling error of the misses that some chunks avert.
pub(super) fn sampled(chunks: &[&Chunk]) -> Doubt {
    let averted: f64 = chunks.iter().map(|chunk| chunk.averted).sum();
    let noise: f64 = chunks.iter().map(|chunk| chunk.noise).sum();
    Doubt::of_error(match averted > 0.0 {
        true => Z80 * noise.sqrt() / averted,
        false => 0.0,
    })
}

#[cfg(test)]
mod tests;
