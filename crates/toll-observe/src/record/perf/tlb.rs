// SPDX-License-Identifier: MIT OR Apache-2.0
//! The TLB information of a sample, as text and as the bits of `data_src`.
//!
//! | text | made by | means |
//! |---|---|---|
//! | `L1 or L2 hit`, `L2 miss` | Intel PEBS | hit in the second level, or page walk |
//! | `L1 hit`, `L2 hit`, `L2 miss` | AMD IBS | each level by name |
//! | `Walker hit`, `Walker miss` | Arm SPE | hit in the TLB unit, or refill from the page table |
//! | `L1 miss` | stores of some CPUs | miss in the first level; not necessarily a walk |
//! | `N/A miss`, `N/A hit` | stores of some CPUs | some level; a miss counts as a walk |
//! | `Fault ...`, `OS ...` | any | the walk ended in the kernel |
//! | `N/A` | any | not reported by the CPU |

/// The TLB result of one access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tlb {
    /// No page walk.
    Hit,
    /// A page walk.
    Miss,
    /// Not reported by the CPU.
    Unknown,
}

/// Parses the TLB column of `perf script` and `perf mem report`; `None` if it is another text.
pub fn from_text(text: &str) -> Option<Tlb> {
    let text = text.trim().to_ascii_lowercase();
    let has = |word: &str| text.split(' ').any(|part| part == word);
    if has("fault") || has("os") {
        return Some(Tlb::Miss);
    }
    let named = has("l2") || has("walker") || has("n/a");
    match text.rsplit(' ').next()? {
        "miss" if named => Some(Tlb::Miss),
        "miss" | "hit" if named || has("l1") => Some(Tlb::Hit),
        "n/a" => Some(Tlb::Unknown),
        _ => None,
    }
}

/// Decodes the TLB bits (26 to 32) of a `data_src` value.
pub fn from_bits(data_src: u64) -> Tlb {
    const HIT: u64 = 0x02;
    const MISS: u64 = 0x04;
    const L1: u64 = 0x08;
    const OTHER: u64 = 0x10 | 0x20;
    const FAULT: u64 = 0x40;
    let bits = (data_src >> 26) & 0x7f;
    match bits {
        _ if bits & FAULT != 0 => Tlb::Miss,
        _ if bits & MISS != 0 && (bits & OTHER != 0 || bits & L1 == 0) => Tlb::Miss,
        _ if bits & (HIT | MISS) != 0 => Tlb::Hit,
        _ => Tlb::Unknown,
    }
}

/// Whether a number can be a `data_src`: one operation, a cache level, a TLB field, and no bits
/// above those in use.
pub fn is_data_src(value: u64) -> bool {
    let operation = value & 0x1f;
    let level = (value >> 5) & 0x3fff;
    let tlb = (value >> 26) & 0x7f;
    operation.count_ones() == 1 && level != 0 && tlb != 0 && value < 1 << 46
}

#[cfg(test)]
mod tests;
