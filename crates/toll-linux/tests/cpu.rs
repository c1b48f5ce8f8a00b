// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLB geometry from raw CPUID registers, as returned by CPUs and hypervisors.

use toll_linux::cpu::{self, Registers};
use toll_model::cost::{TlbGeometry, TlbLevel};
use toll_testkit::Directory;

/// (leaf, subleaf, eax, ebx, ecx, edx).
type Row = (u32, u32, u32, u32, u32, u32);

/// The answer from a table; zero for all others.
fn answer(table: &[Row], leaf: u32, subleaf: u32) -> Registers {
    let found = table.iter().find(|row| (row.0, row.1) == (leaf, subleaf));
    found.map_or(Registers::default(), |row| Registers {
        eax: row.2,
        ebx: row.3,
        ecx: row.4,
        edx: row.5,
    })
}

fn decode(table: &[Row]) -> TlbGeometry {
    cpu::decode(&|leaf, subleaf| answer(table, leaf, subleaf))
}

/// Leaf 0 of Intel with the maximum leaf, and of AMD.
const fn intel(last: u32) -> (u32, u32, u32, u32, u32, u32) {
    (0, 0, last, 0x756e_6547, 0x6c65_746e, 0x4965_6e69)
}
const AMD: (u32, u32, u32, u32, u32, u32) = (0, 0, 0x1c, 0x6874_7541, 0x444d_4163, 0x6974_6e65);

/// ebx of leaf 0x18: ways, and bits for the sizes.
const fn ways(ways: u32, sizes: u32) -> u32 {
    ways << 16 | sizes
}
const SIZE_4K: u32 = 1;
const SIZE_2M: u32 = 2;
/// edx of leaf 0x18: level and kind.
const fn level(level: u32, kind: u32) -> u32 {
    level << 5 | kind
}
const DATA: u32 = 1;
const INSTRUCTION: u32 = 2;
const UNIFIED: u32 = 3;

fn size(entries: u32, ways: u32) -> TlbLevel {
    TlbLevel { entries, ways }
}

#[test]
fn intel_leaf_18() {
    let found = decode(&[
        intel(0x1b),
        (0x18, 0, 5, 0, 0, 0),
        (0x18, 1, 0, ways(8, SIZE_4K), 16, level(1, INSTRUCTION)),
        (0x18, 2, 0, ways(4, SIZE_4K), 16, level(1, DATA)),
        (0x18, 3, 0, ways(4, SIZE_2M), 8, level(1, DATA)),
        (
            0x18,
            4,
            0,
            ways(8, SIZE_4K | SIZE_2M),
            128,
            level(2, UNIFIED),
        ),
        (0x18, 5, 0, ways(8, SIZE_4K), 128, level(2, UNIFIED)),
    ]);
    assert_eq!(found.name, "cpuid");
    assert_eq!((found.l1d_4k, found.l1d_2m), (size(64, 4), size(32, 4)));
    // Two parallel arrays count as one.
    assert_eq!(found.l2_4k, size(2048, 16));
    assert_eq!(found.l2_2m, Some(size(1024, 8)));
    assert!(found.l2_shared);
}

#[test]
fn a_fully_associative_level_has_as_many_ways_as_entries() {
    let found = decode(&[
        intel(0x18),
        (0x18, 0, 3, 0, 0, 0),
        // Fully associative: one set, its ways are the entries.
        (0x18, 1, 0, ways(64, SIZE_4K), 1, level(1, DATA) | 1 << 8),
        (0x18, 2, 0, ways(32, SIZE_2M), 1, level(1, DATA) | 1 << 8),
        (
            0x18,
            3,
            0,
            ways(12, SIZE_4K | SIZE_2M),
            128,
            level(2, UNIFIED),
        ),
    ]);
    assert_eq!((found.l1d_4k, found.l1d_2m), (size(64, 64), size(32, 32)));
    assert_eq!(found.l2_4k, size(1536, 12));
}

#[test]
fn an_intel_cpu_without_the_leaf_gets_its_preset() {
    // Cascade Lake: family 6, model 0x55; its last leaf is 0x16.
    assert_eq!(
        decode(&[intel(0x16), (1, 0, 0x0005_0657, 0, 0, 0)]).name,
        "skylake"
    );
    // Sapphire Rapids (model 0x8f) behind a hypervisor that zeroes the leaf.
    assert_eq!(
        decode(&[intel(0x20), (1, 0, 0x0008_06f8, 0, 0, 0)]).name,
        "icelake"
    );
}

#[test]
fn amd_second_level_with_ways_that_divide_it() {
    let found = decode(&[
        AMD,
        (1, 0, 0x00a2_0f12, 0, 0, 0),
        (0x8000_0000, 0, 0x8000_0023, 0, 0, 0),
        (0x8000_0005, 0, 0xff40_ff40, 0xff40_ff40, 0, 0),
        // 2 MiB: 2048 entries, 16 ways; 4 KiB the same.
        (0x8000_0006, 0, 0x8800_4200, 0x8800_4200, 0, 0),
    ]);
    assert_eq!(found.name, "cpuid");
    assert_eq!((found.l1d_4k, found.l1d_2m), (size(64, 64), size(64, 64)));
    assert_eq!(
        (found.l2_4k, found.l2_2m),
        (size(2048, 16), Some(size(2048, 16)))
    );
    assert!(found.l2_shared);
}

#[test]
fn a_guest_on_zen_4_reports_ways_that_cannot_be() {
    // As read on a Zen 4 guest: 3072 entries in 8 ways would be 384 sets.
    let found = decode(&[
        AMD,
        (1, 0, 0x00a1_0f11, 0, 0, 0),
        (0x8000_0000, 0, 0x8000_0021, 0, 0, 0),
        (
            0x8000_0005,
            0,
            0xff48_ff40,
            0xff48_ff40,
            0x2008_0140,
            0x2008_0140,
        ),
        (
            0x8000_0006,
            0,
            0x5c00_2200,
            0x6c00_4200,
            0x0400_6140,
            0x0a00_9140,
        ),
    ]);
    assert_eq!(found, TlbGeometry::preset("zen4").unwrap());
}

#[test]
fn zen_5_counts_its_second_level_in_units_of_32() {
    let decoded = |family: u32, leaf_21: u32| {
        decode(&[
            AMD,
            (1, 0, family, 0, 0, 0),
            (0x8000_0000, 0, 0x8000_0021, 0, 0, 0),
            (
                0x8000_0005,
                0,
                0xff60_ff40,
                0xff60_ff40,
                0x300c_0140,
                0x2008_0140,
            ),
            (
                0x8000_0006,
                0,
                0x4080_2040,
                0x6080_4040,
                0x0400_8140,
                0x0c00_9140,
            ),
            (0x8000_0021, 0, leaf_21, 0, 0, 0),
        ])
    };
    const ZEN_5: u32 = 0x00b0_0f21;
    // As read in a guest, which does not see bit 14, and on bare metal.
    for leaf_21 in [0x0204, 0x4204] {
        let found = decoded(ZEN_5, leaf_21);
        assert_eq!((found.l1d_4k, found.l2_4k), (size(96, 96), size(4096, 8)));
        assert!(found.l2_shared);
    }
    assert_eq!(decoded(0x00a0_0f11, 0).l2_4k, size(128, 8));
}

#[test]
fn empty_leaves_and_unknown_vendors_get_a_preset() {
    assert_eq!(decode(&[AMD, (1, 0, 0x00a0_0f11, 0, 0, 0)]).name, "zen3");
    assert_eq!(decode(&[]).name, "skylake");
}

#[test]
fn this_cpu_has_a_plausible_geometry() {
    let found = cpu::tlb_geometry();
    assert!(
        found.reach_4k() >= 1 << 20 && found.reach_4k() <= 1 << 30,
        "{found:?}"
    );
}

#[test]
fn the_model_keeps_apart_cpus_of_one_name() {
    let text = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n";
    let machine = Directory::with(&[("proc/cpuinfo", text)]);
    assert_eq!(cpu::model(&machine.root()), "AMD EPYC (family 25 model 17)");
    assert_eq!(cpu::model(&Directory::with(&[]).root()), "unknown CPU");
}

#[test]
fn the_instruction_tlb_is_read_from_either_vendor_s_leaves() {
    let reach = |table: &[Row]| {
        cpu::decode_instruction_reach(&|leaf, subleaf| answer(table, leaf, subleaf))
    };
    // Zen: 64 entries for 4 KiB pages in the low byte of EBX.
    assert_eq!(
        reach(&[AMD, (0x8000_0005, 0, 0, 0xff40_ff40, 0, 0)]),
        64 * 4096
    );
    // Ice Lake: instruction, first level, 4 KiB pages, 8 ways of 16 sets.
    let ice = (0x18, 1, 0, ways(8, SIZE_4K), 16, level(1, INSTRUCTION));
    assert_eq!(
        reach(&[intel(0x20), (0x18, 0, 1, 0, 0, 0), ice]),
        128 * 4096
    );
    // Without plausible values: the smallest.
    assert_eq!(reach(&[intel(0x16)]), 64 * 4096);
    assert_eq!(reach(&[AMD]), 64 * 4096);
}
