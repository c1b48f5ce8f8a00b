// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small profiles, plans and costs for the tests.
#![allow(dead_code)]

use std::sync::Arc;

use proptest::prelude::*;
use toll_model::cost::{CostTable, Measured, TlbGeometry};
use toll_model::profile::{FORMAT, Profile, Program, Row, SiteRows, Source, VERSION};
use toll_model::site::{Frame, Level, Site, SiteKind};
use toll_model::{PAGE, REGION};

pub const PAGES: u32 = (REGION / PAGE) as u32;

pub fn frame(offset: u64) -> Frame {
    Frame {
        module: "00ff".to_owned(),
        path: "/usr/bin/program".to_owned(),
        offset,
        symbol: Some(format!("function_{offset:x}")),
        source: None,
        function: Some((offset & !0xff, offset | 0xff)),
        nearest: None,
    }
}

pub fn alloc(call_site: u64, length: u64, ordinal: u32) -> SiteKind {
    SiteKind::Alloc {
        frames: vec![
            Arc::new(frame(call_site)),
            Arc::new(frame(call_site + 0x1000)),
        ],
        class: toll_model::wire::class(length),
        ordinal,
        thread: 0,
    }
}

pub fn site(id: u32, kind: SiteKind, length: u64) -> Site {
    Site {
        id,
        kind,
        length,
        misalignment: 0,
        level: Level::Exact,
    }
}

pub fn row(offset: u64, length: u64, misses: f64) -> Row {
    Row {
        offset,
        length,
        accesses: misses,
        misses,
        misses_huge: Some(0.0),
        l2_spared: 0.0,
        reuse_log2: Some(30.0),
        dependent: Some(1.0),
        touched_pages: (length / PAGE) as u32,
        huge: false,
    }
}

/// Blocks of 1 MiB of one site at descending addresses, like Python's arenas, each with the same
/// number of misses. The first starts at this address.
pub fn arenas(first: u64, misses: &[f64]) -> Profile {
    const LENGTH: u64 = REGION / 2;
    let arena = |(number, &misses): (usize, &f64)| {
        let address = first - number as u64 * LENGTH;
        let mut site = site(number as u32, alloc(0x1234, LENGTH, number as u32), LENGTH);
        site.misalignment = address % REGION;
        SiteRows {
            site,
            rows: vec![row(0, LENGTH, misses)],
            freed: false,
            address: Some(address),
            places: Vec::new(),
        }
    };
    profile(misses.iter().enumerate().map(arena).collect())
}

/// A block of the heap with a row per region.
pub fn regions(misses: &[f64]) -> Profile {
    let rows = misses
        .iter()
        .enumerate()
        .map(|(n, &m)| row(n as u64 * REGION, REGION, m))
        .collect();
    let length = misses.len() as u64 * REGION;
    profile(vec![SiteRows {
        site: site(0, alloc(0x1234, length, 0), length),
        rows,
        freed: false,
        address: None,
        places: Vec::new(),
    }])
}

pub fn profile(sites: Vec<SiteRows>) -> Profile {
    Profile {
        format: FORMAT.to_owned(),
        version: VERSION,
        source: Source::Sim,
        source_detail: "test".to_owned(),
        program: Program {
            path: "/usr/bin/program".to_owned(),
            build_id: "00ff".to_owned(),
        },
        command: vec!["program".to_owned()],
        complete: true,
        sampled: 1.0,
        observations: 1_000_000,
        instructions: None,
        native_ns: Some(10_000_000_000),
        footprint: 1 << 30,
        warnings: Vec::new(),
        sites,
    }
}

/// Costs of a calibrated machine where blocks do not get cold.
pub fn costs() -> CostTable {
    let exact = |ns: f64| Measured {
        median: ns,
        low: ns * 0.9,
        high: ns * 1.1,
    };
    let tlb = TlbGeometry::preset("zen4").expect("known");
    CostTable {
        complete: true,
        fault_4k: exact(500.0),
        fault_2m_warm: exact(300_000.0),
        fault_2m_cold: exact(300_000.0),
        collapse: exact(400_000.0),
        ..CostTable::default_for("cpu", "6.12", 1 << 34, tlb)
    }
}

/// Profiles with several sites of several kinds. Counts are multiples of 1/8 and 1/16: JSON
/// preserves all but the last bit.
pub fn any_profile() -> impl Strategy<Value = Profile> {
    let eighths = (0u32..8_000_000).prop_map(|n| f64::from(n) / 8.0);
    let sixteenths = (0u32..=16).prop_map(|n| f64::from(n) / 16.0);
    let rows = prop::collection::vec(
        (0u64..64, 1u64..64, eighths, sixteenths, any::<u8>()),
        0..20,
    );
    let one = (rows, any_kind(), 0u64..512, prop::bool::ANY);
    prop::collection::vec(one, 0..6).prop_map(|sites| {
        let build =
            |(id, (gaps, kind, misalignment, freed))| any_site(id, gaps, kind, misalignment, freed);
        profile(sites.into_iter().enumerate().map(build).collect())
    })
}

type Gap = (u64, u64, f64, f64, u8);

fn any_site(id: usize, gaps: Vec<Gap>, kind: SiteKind, misalignment: u64, freed: bool) -> SiteRows {
    let mut offset = 0;
    let mut rows = Vec::new();
    for (gap, pages, misses, share, bits) in gaps {
        offset += gap * PAGE;
        let mut row = row(offset, pages * PAGE, misses);
        row.misses_huge = (bits & 1 != 0).then_some(misses * share * 1.5);
        row.dependent = (bits & 2 != 0).then_some(share as f32);
        row.reuse_log2 = (bits & 4 != 0).then_some(20.0 + share as f32 * 12.0);
        row.touched_pages = (pages as f64 * share) as u32;
        row.huge = bits & 0x38 == 0;
        offset = row.end();
        rows.push(row);
    }
    let mut site = site(id as u32, kind, offset);
    site.misalignment = misalignment * PAGE;
    SiteRows {
        site,
        rows,
        places: Vec::new(),
        freed,
        address: None,
    }
}

fn any_kind() -> impl Strategy<Value = SiteKind> {
    prop_oneof![
        (0u64..4, 20u32..30, 0u32..3).prop_map(|(call_site, class, ordinal)| alloc(
            0x1000 * call_site + 1,
            1 << class,
            ordinal
        )),
        Just(SiteKind::Heap),
        Just(SiteKind::Stack),
        Just(SiteKind::Anonymous),
        Just(SiteKind::Reservation {
            runtime: "jvm".to_owned()
        }),
        Just(SiteKind::Vma {
            name: "[anon:a]".to_owned()
        }),
        (0u64..1 << 30).prop_map(|region| SiteKind::Address {
            start: region * REGION
        }),
        Just(SiteKind::File {
            build_id: String::new(),
            path: "/lib/x.so".to_owned()
        }),
    ]
}
