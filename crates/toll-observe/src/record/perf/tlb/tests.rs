// SPDX-License-Identifier: MIT OR Apache-2.0

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
