// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU name, data TLB geometry, and the reach of the instruction TLB.

use toll_model::cost::{TlbGeometry, TlbLevel};

use crate::Root;

/// Returns the `model name` of /proc/cpuinfo with family and model, since clouds often replace the
/// name with a generic one; `unknown CPU` if it is missing.
pub fn model(root: &Root) -> String {
    let text = root.read("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
    };
    let name = field("model name").unwrap_or_else(|| "unknown CPU".to_owned());
    match (field("cpu family"), field("model")) {
        (Some(family), Some(model)) => format!("{name} (family {family} model {model})"),
        _ => name,
    }
}

/// The four registers that CPUID returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// Answers CPUID for (leaf, subleaf): the instruction, or recorded values in tests.
pub type Cpuid<'a> = &'a dyn Fn(u32, u32) -> Registers;

/// Returns the data TLBs of this CPU: from CPUID, or a preset by family and model if CPUID gives no
/// plausible values.
pub fn tlb_geometry() -> TlbGeometry {
    decode(&instruction)
}

#[cfg(target_arch = "x86_64")]
fn instruction(leaf: u32, subleaf: u32) -> Registers {
    // Every x86-64 CPU has the instruction; Rust 1.85 still marks it unsafe, later versions do not.
    #[allow(unused_unsafe)]
    let found = unsafe { core::arch::x86_64::__cpuid_count(leaf, subleaf) };
    Registers {
        eax: found.eax,
        ebx: found.ebx,
        ecx: found.ecx,
        edx: found.edx,
    }
}

#[cfg(not(target_arch = "x86_64"))]
compile_error!("tollfree reads page tables and TLBs of x86-64 only");

/// Returns the bytes of program text that the first level of this CPU's instruction TLB reaches
/// with 4 KiB pages.
pub fn instruction_reach() -> u64 {
    decode_instruction_reach(&instruction)
}

/// Returns the reach that a CPU's CPUID answers describe.
pub fn decode_instruction_reach(cpuid: Cpuid) -> u64 {
    let entries = match &vendor(cpuid) {
        b"GenuineIntel" => intel_instruction_entries(cpuid),
        // Entries for 4 KiB pages in bits 0..8 of leaf 0x80000005, EBX.
        b"AuthenticAMD" | b"HygonGenuine" => Some(cpuid(0x8000_0005, 0).ebx & 0xff),
        _ => None,
    };
    let is_plausible = |entries: &u32| (8..=1024).contains(entries);
    let entries = entries.filter(is_plausible);
    u64::from(entries.unwrap_or(INSTRUCTION_ENTRIES)) * toll_model::PAGE
}

/// Entries where CPUID gives none: the smallest of the CPUs since Skylake and Zen.
const INSTRUCTION_ENTRIES: u32 = 64;

/// Intel's leaf 0x18: instruction TLBs of the first level.
fn intel_instruction_entries(cpuid: Cpuid) -> Option<u32> {
    if cpuid(0, 0).eax < 0x18 {
        return None;
    }
    let last = cpuid(0x18, 0).eax.min(31);
    let all = (0..=last).map(|subleaf| translation(cpuid, subleaf));
    all.filter(|t| t.kind == 2 && t.level == 1 && t.pages_4k)
        .map(|t| t.size.entries)
        .max()
}

/// Returns the geometry that a CPU's CPUID answers describe.
pub fn decode(cpuid: Cpuid) -> TlbGeometry {
    let decoded = match &vendor(cpuid) {
        b"GenuineIntel" => intel(cpuid),
        b"AuthenticAMD" | b"HygonGenuine" => amd(cpuid),
        _ => None,
    };
    decoded
        .filter(is_plausible)
        .unwrap_or_else(|| suggested_preset(cpuid))
}

fn vendor(cpuid: Cpuid) -> [u8; 12] {
    let leaf = cpuid(0, 0);
    let mut name = [0; 12];
    for (place, word) in name.chunks_exact_mut(4).zip([leaf.ebx, leaf.edx, leaf.ecx]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    name
}

/// (family, model) with the extended parts folded in.
fn family_model(cpuid: Cpuid) -> (u32, u32) {
    let eax = cpuid(1, 0).eax;
    let (family, model) = (eax >> 8 & 0xf, eax >> 4 & 0xf);
    let (more_family, more_model) = (eax >> 20 & 0xff, eax >> 16 & 0xf);
    match family {
        0xf => (family + more_family, model | more_model << 4),
        6 => (family, model | more_model << 4),
        _ => (family, model),
    }
}

/// A subleaf of Intel's leaf 0x18.
struct Translation {
    /// 1: data, 2: instruction, 3: unified, 4: load only, 5: store only.
    kind: u32,
    level: u32,
    pages_4k: bool,
    pages_2m: bool,
    size: TlbLevel,
}

fn translation(cpuid: Cpuid, subleaf: u32) -> Translation {
    let found = cpuid(0x18, subleaf);
    let ways = found.ebx >> 16;
    let fully = found.edx >> 8 & 1 == 1;
    let entries = ways.saturating_mul(found.ecx);
    Translation {
        kind: found.edx & 0x1f,
        level: found.edx >> 5 & 7,
        pages_4k: found.ebx & 1 != 0,
        pages_2m: found.ebx >> 1 & 1 != 0,
        size: TlbLevel {
            entries,
            ways: if fully { entries } else { ways },
        },
    }
}

/// Intel: deterministic address translation parameters, leaf 0x18.
fn intel(cpuid: Cpuid) -> Option<TlbGeometry> {
    if cpuid(0, 0).eax < 0x18 {
        return None;
    }
    // Some hypervisors return an invalid number of subleaves.
    let last = cpuid(0x18, 0).eax.min(31);
    let all: Vec<Translation> = (0..=last)
        .map(|subleaf| translation(cpuid, subleaf))
        .filter(|t| matches!(t.kind, 1 | 3 | 4))
        .collect();
    let l2_2m = together(&all, 2, |t| t.pages_2m);
    Some(TlbGeometry {
        name: "cpuid".to_owned(),
        l1d_4k: together(&all, 1, |t| t.pages_4k)?,
        l1d_2m: together(&all, 1, |t| t.pages_2m)?,
        l2_4k: together(&all, 2, |t| t.pages_4k)?,
        l2_2m,
        l2_shared: all.iter().any(|t| t.level == 2 && t.pages_4k && t.pages_2m),
    })
}

/// Combines the arrays of a level: Ice Lake reports its second level as two arrays that are looked
/// up in parallel.
fn together(
    all: &[Translation],
    level: u32,
    wanted: impl Fn(&Translation) -> bool,
) -> Option<TlbLevel> {
    all.iter()
        .filter(|t| t.level == level && wanted(t))
        .map(|t| t.size)
        .reduce(|sum, size| TlbLevel {
            entries: sum.entries.saturating_add(size.entries),
            ways: sum.ways.saturating_add(size.ways),
        })
}

/// AMD: leaves 0x80000005 (first level) and 0x80000006 (second level).
fn amd(cpuid: Cpuid) -> Option<TlbGeometry> {
    if cpuid(0x8000_0000, 0).eax < 0x8000_0006 {
        return None;
    }
    let first = cpuid(0x8000_0005, 0);
    let second = cpuid(0x8000_0006, 0);
    let unit = amd_unit(cpuid);
    let l2_4k = amd_second(second.ebx, unit)?;
    let l2_2m = amd_second(second.eax, unit);
    Some(TlbGeometry {
        name: "cpuid".to_owned(),
        l1d_4k: amd_first(first.ebx),
        l1d_2m: amd_first(first.eax),
        l2_4k,
        l2_2m,
        // Since Zen, one array serves both sizes; both leaves then report all of its entries.
        l2_shared: l2_2m.is_some_and(|level| level.entries == l2_4k.entries),
    })
}

/// Data TLB of a word of leaf 0x80000005: entries in bits 16..24, ways in 24..32.
fn amd_first(word: u32) -> TlbLevel {
    let entries = word >> 16 & 0xff;
    let ways = word >> 24;
    TlbLevel {
        entries,
        ways: if ways == 0xff { entries } else { ways },
    }
}

/// Unit of the entry counts in leaf 0x80000006: 32, since 4096 does not fit into 12 bits (bit 14 of
/// leaf 0x80000021, L2TlbSizeX32, AMD64 Architecture Programmer's Manual, volume 3). Hypervisors
/// pass the sizes on without the bit, but no CPU since Zen 5 (family 0x1a) has fewer than 512
/// entries.
fn amd_unit(cpuid: Cpuid) -> u32 {
    let leaf_21 = match cpuid(0x8000_0000, 0).eax {
        0x8000_0021.. => cpuid(0x8000_0021, 0).eax,
        _ => 0,
    };
    let is_small = cpuid(0x8000_0006, 0).ebx >> 16 & 0xfff < 512;
    match leaf_21 >> 14 & 1 == 1 || (family_model(cpuid).0 >= 0x1a && is_small) {
        true => 32,
        false => 1,
    }
}

/// Data TLB of a word of leaf 0x80000006: entries in bits 16..28, coded ways in 28..32.
fn amd_second(word: u32, unit: u32) -> Option<TlbLevel> {
    let entries = (word >> 16 & 0xfff) * unit;
    let ways = match word >> 28 {
        code @ 1..=4 => code,
        5 => 6,
        6 => 8,
        8 => 16,
        0xa => 32,
        0xb => 48,
        0xc => 64,
        0xd => 96,
        0xe => 128,
        0xf => entries,
        _ => return None,
    };
    Some(TlbLevel { entries, ways })
}

/// Whether a TLB of this geometry can exist: hypervisors zero leaves, and several CPUs report ways
/// that do not divide their entries into 2^n sets.
fn is_plausible(geometry: &TlbGeometry) -> bool {
    let level_ok = |level: TlbLevel, most: u32| {
        let TlbLevel { entries, ways } = level;
        let sets_ok = ways != 0 && entries % ways == 0 && (entries / ways).is_power_of_two();
        (8..=most).contains(&entries) && sets_ok
    };
    level_ok(geometry.l1d_4k, 512)
        && level_ok(geometry.l1d_2m, 512)
        && level_ok(geometry.l2_4k, 16_384)
        && geometry.l2_2m.is_none_or(|level| level_ok(level, 16_384))
        && geometry.l2_4k.entries > geometry.l1d_4k.entries
}

/// Returns the preset for vendor, family and model; the most common one otherwise.
fn suggested_preset(cpuid: Cpuid) -> TlbGeometry {
    let name = match (&vendor(cpuid), family_model(cpuid)) {
        (b"GenuineIntel", (6, model)) => intel_preset(model),
        (b"AuthenticAMD" | b"HygonGenuine", (family, model)) if family >= 0x17 => {
            amd_preset(family, model)
        }
        _ => "skylake",
    };
    preset(name)
}

fn amd_preset(family: u32, model: u32) -> &'static str {
    match (family, model) {
        (0x17 | 0x18, _) | (0x19, 0..=0x0f | 0x20..=0x5f) => "zen3",
        _ => "zen4",
    }
}

fn intel_preset(model: u32) -> &'static str {
    match model {
        // Ice Lake and later servers and clients have the larger second level.
        0x6a | 0x6c | 0x7d | 0x7e | 0x8c | 0x8d | 0x8f | 0x97 | 0x9a | 0xa7 | 0xaa | 0xad
        | 0xae | 0xb7 | 0xba | 0xbf | 0xcf => "icelake",
        _ => "skylake",
    }
}

/// Returns a preset of toll-model.
fn preset(name: &str) -> TlbGeometry {
    TlbGeometry::preset(name).unwrap_or_else(|| panic!("toll-model has no preset {name}"))
}
