// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured access pattern: chains of dependent loads, evenly distributed.
//!
//! The next address of a chain is a random function of the last one *and of the value loaded
//! there*, so no load can start before the chain's previous load has completed, and no prefetcher
//! can predict it. (All values are zero, but neither the compiler nor the CPU knows.) This needs no
//! permutation in memory, so every line of the footprint takes part, and no setup is needed.

use super::clock::cpu_ns;

/// Numbers of independent chains that are measured.
pub(super) const CHAINS: [u32; 4] = [1, 2, 4, 8];

/// Loads of one timed sample over all chains.
const LOADS: u32 = 1 << 15;

/// Returns the CPU time of one load in ns, with `chains` (one of [`CHAINS`]) chains over the first
/// `footprint` bytes (a power of two) at `base`, which must be mapped and readable.
pub(super) fn sample(base: *const u8, footprint: u64, chains: u32, seed: u64) -> f64 {
    assert!(footprint.is_power_of_two());
    let run = match chains {
        1 => chase::<1>,
        2 => chase::<2>,
        4 => chase::<4>,
        8 => chase::<8>,
        _ => panic!("{chains} chains are not measured"),
    };
    let began = cpu_ns();
    std::hint::black_box(run(base, footprint, LOADS / chains, seed));
    (cpu_ns() - began) / f64::from(LOADS)
}

fn chase<const N: usize>(base: *const u8, footprint: u64, steps: u32, seed: u64) -> u64 {
    let lines = (footprint - 1) & !63;
    let mut states: [u64; N] = std::array::from_fn(|chain| mix(seed ^ (chain as u64) << 56));
    for _ in 0..steps {
        for state in &mut states {
            let offset = (*state >> 24) & lines;
            // SAFETY: the caller's footprint is mapped, and `lines` keeps the offset inside.
            let value = unsafe { base.add(offset as usize).cast::<u64>().read_volatile() };
            *state = mix(state.wrapping_add(value));
        }
    }
    states.iter().fold(0, |sum, state| sum ^ state)
}

/// One step of a linear congruential generator; its upper bits are random enough.
fn mix(state: u64) -> u64 {
    state
        .wrapping_mul(0x5851_f42d_4c95_7f2d)
        .wrapping_add(0x1405_7b7e_f767_814f)
}
