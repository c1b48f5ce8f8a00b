// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a `syscall` instruction in a process: the kernel maps some in its vdso.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// `AT_SYSINFO_EHDR`: the auxiliary vector entry with the vdso's address.
const VDSO_ENTRY: u64 = 33;
/// The machine code of `syscall`.
pub(super) const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// Returns the address of a `syscall` instruction in a process's vdso.
pub(super) fn syscall_instruction(pid: u32) -> Option<u64> {
    let base = address(&fs::read(format!("/proc/{pid}/auxv")).ok()?)?;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    // Two pages in all kernels so far; the read stops at the end of the mapping.
    let mut image = vec![0; 4 * 4096];
    let length = memory.read_at(&mut image, base).ok()?;
    let found = image[..length]
        .windows(2)
        .position(|bytes| bytes == SYSCALL)?;
    Some(base + found as u64)
}

/// Returns the vdso's address from an auxiliary vector of (type, value) pairs.
fn address(vector: &[u8]) -> Option<u64> {
    let word = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).ok();
    vector
        .chunks_exact(16)
        .find(|pair| word(&pair[..8]) == Some(VDSO_ENTRY))
        .and_then(|pair| word(&pair[8..]))
        .filter(|address| *address != 0)
}

#[cfg(test)]
mod tests;
