// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sites, profiles, plans, costs and mappings.

use std::path::Path;
use std::sync::Arc;

use toll_linux::proc::Mapping;
use toll_linux::symbols::build_id;
use toll_model::cost::{CostTable, Measured, TlbGeometry};
use toll_model::plan::{self, Estimate, Plan, Region, Verdict, Why};
use toll_model::profile::{self, Profile, Program, Row, SiteRows, Source};
use toll_model::site::{Frame, Level, Site, SiteKind};
use toll_model::{PAGE, REGION, wire};

/// Pages of a region.
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
        class: wire::class(length),
        ordinal,
        thread: 0,
        shared: false,
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

/// A site that is never freed, at an unknown address.
pub fn site_rows(site: Site, rows: Vec<Row>) -> SiteRows {
    SiteRows {
        site,
        rows,
        freed: false,
        address: None,
        places: Vec::new(),
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
            address: Some(address),
            ..site_rows(site, vec![row(0, LENGTH, misses)])
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
    profile(vec![site_rows(
        site(0, alloc(0x1234, length, 0), length),
        rows,
    )])
}

pub fn profile(sites: Vec<SiteRows>) -> Profile {
    Profile {
        format: profile::FORMAT.to_owned(),
        version: profile::VERSION,
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
        native_cpu_ns: None,
        footprint: 1 << 30,
        warnings: Vec::new(),
        sites,
        stacks: Vec::new(),
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

/// The region of this number in a site of a plan.
pub fn region(site: u32, number: u64, verdict: Verdict) -> Region {
    Region {
        site,
        offset: number * REGION,
        length: REGION,
        level: Level::Exact,
        misses: 1.0,
        benefit_ns: 1.0,
        cost_ns: 0.0,
        verdict,
        why: match verdict {
            Verdict::Huge => Why::Pays,
            Verdict::Leave => Why::CostsMore,
        },
        touched_pages: PAGES,
    }
}

/// A plan for the program in a file.
pub fn plan(program: &Path, sites: Vec<Site>, regions: Vec<Region>) -> Plan {
    Plan {
        format: plan::FORMAT.to_owned(),
        version: plan::VERSION,
        program: Program {
            build_id: build_id(program),
            path: program.to_string_lossy().into_owned(),
        },
        source: Source::Sim,
        cpu: String::new(),
        saved_ns: Estimate::exact(1.0),
        saved_all_ns: Estimate::exact(1.0),
        baseline_ns: None,
        predicted_speedup: Estimate::exact(1.0),
        reason: "a test".to_owned(),
        warnings: Vec::new(),
        thp_always: false,
        whole_heap: false,
        text: Vec::new(),
        sites,
        regions,
    }
}

/// A private, writable, anonymous mapping.
pub fn mapping(start: u64, end: u64, name: &str) -> Mapping {
    Mapping {
        start,
        end,
        read: true,
        write: true,
        execute: false,
        shared: false,
        offset: 0,
        device: (0, 0),
        inode: 0,
        name: name.into(),
    }
}
