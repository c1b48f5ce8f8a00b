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
mod tests {
    use super::*;

    #[test]
    fn text_of_every_kind_of_cpu() {
        for (text, expected) in [
            ("L1 or L2 hit", Tlb::Hit),
            ("L2 miss", Tlb::Miss),
            ("L1 hit", Tlb::Hit),
            ("L2 hit", Tlb::Hit),
            ("L1 miss", Tlb::Hit),
            ("L1 or L2 miss", Tlb::Miss),
            ("Walker hit", Tlb::Hit),
            ("Walker miss", Tlb::Miss),
            ("N/A miss", Tlb::Miss),
            ("N/A hit", Tlb::Hit),
            ("Fault miss", Tlb::Miss),
            ("OS fault", Tlb::Miss),
            (" N/A ", Tlb::Unknown),
        ] {
            assert_eq!(from_text(text), Some(expected), "{text}");
        }
        for text in ["", "miss", "L3 hit", "hot", "Local RAM hit"] {
            assert_eq!(from_text(text), None, "{text}");
        }
    }

    #[test]
    fn bits_agree_with_the_text_that_perf_prints_for_them() {
        // Values and texts as perf prints them.
        for (bits, text) in [
            (0x10268100142, "L1 or L2 hit"),
            (0x10450100442, "L2 miss"),
            (0x10668100842, "L1 or L2 hit"),
            (0x10650100842, "L2 miss"),
            (0x1e05080021, "N/A"),
            (0x851101042, "L2 miss"),
        ] {
            assert_eq!(Some(from_bits(bits)), from_text(text), "{bits:#x}");
            assert!(is_data_src(bits), "{bits:#x}");
        }
    }

    #[test]
    fn instruction_addresses_are_no_data_sources() {
        for ip in [
            0x401000,
            0x401002,
            0x5555_5555_5142,
            0xffff_ffff_8175_54ea,
            0,
        ] {
            assert!(!is_data_src(ip), "{ip:#x}");
        }
    }
}
