// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn each_number_of_bits_has_its_ranges() {
    let usual = Layout::new(Some(28));
    let wide = Layout::new(Some(32));
    for address in [0x5555_5555_4000, 0x5630_0000_0000, 0x7f3a_0000_0000] {
        assert!(usual.is_random(address), "{address:#x}");
        assert!(wide.is_random(address), "{address:#x}");
    }
    for address in [0x6412_8000_0000, 0x79c8_2000_0000, 0x6fff_ffff_f000] {
        assert!(!usual.is_random(address), "{address:#x}");
        assert!(wide.is_random(address), "{address:#x}");
        assert!(Layout::new(None).is_random(address), "{address:#x}");
    }
    for address in [0x40_0000, 0x1878_0000_0000, 0x6800_0000_0000] {
        assert!(!wide.is_random(address), "{address:#x}");
    }
}

#[test]
fn libraries_show_where_mappings_are() {
    let mut layout = Layout::new(Some(28));
    let library = |start, executable| Map {
        pid: 1,
        start,
        length: 0x20_0000,
        offset: 0,
        executable,
        name: "/usr/lib/libc.so.6",
    };
    let anonymous = 0x4321_0000_0000;
    layout.learn(&library(0x4321_5000_0000, false));
    assert!(!layout.is_random(anonymous));
    layout.learn(&library(0x4321_5000_0000, true));
    assert!(layout.is_random(anonymous));
    // A library linked to a fixed address is ignored.
    layout.learn(&library(0x4100_0000, true));
    assert!(!layout.is_random(0x4100_0000));
}
