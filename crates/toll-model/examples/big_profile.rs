// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU seconds and peak memory to build, write, read and plan the profile of a
//! process with 64 GiB of address space and 60,000 mappings.
//!
//!     cargo run --release -p toll-model --example big_profile
//!
//! Ends with status 1 if it takes 2 s of CPU time or 200 MiB, or more.

use std::fs;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use toll_model::anchor::{AnchorKind, Frame, Level};
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::cost::{CostTable, TlbGeometry};
use toll_model::price::{Options, price};
use toll_model::profile::{Profile, Program, Source};
use toll_model::{PAGE, REGION};

const SPACE: u64 = 64 << 30;
const MAPPINGS: u32 = 60_000;
const BIG: u64 = 8;
const LIMIT_SECONDS: f64 = 2.0;
const LIMIT_BYTES: u64 = 200 << 20;

fn main() -> ExitCode {
    let started = cpu_seconds();
    let mut last = started;
    let mut lap = |what: &str| {
        let now = cpu_seconds();
        println!(
            "{what:24} {:6.3} s, peak {:4} MiB",
            now - last,
            peak_bytes() >> 20
        );
        last = now;
    };
    let profile = recorded();
    let rows: usize = profile.anchors.iter().map(|anchor| anchor.rows.len()).sum();
    let anchors = profile.anchors.len();
    lap("build");
    let text = profile.to_json().expect("sound");
    drop(profile);
    lap("write");
    let length = text.len();
    let profile = Profile::from_json(&text).expect("just written");
    drop(text);
    lap("read");
    let tlb = TlbGeometry::preset("zen4").expect("known");
    let costs = CostTable::default_for("cpu", "6.12", SPACE, tlb);
    let plan = price(&profile, &costs, Options::default());
    lap("price");
    let toml = plan.to_toml().expect("sound");
    lap("write the plan");
    println!(
        "{anchors} anchors, {rows} rows, {} MiB of JSON",
        length >> 20
    );
    println!(
        "{} regions, {} KiB of TOML",
        plan.regions.len(),
        toml.len() >> 10
    );
    println!("{}", plan.reason);
    black_box(toml);

    let seconds = cpu_seconds() - started;
    let bytes = peak_bytes();
    println!("cpu_seconds={seconds:.3} peak_rss_bytes={bytes}");
    match seconds < LIMIT_SECONDS && bytes < LIMIT_BYTES {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// What a recording would have counted: a few big mappings touched everywhere, some of
/// their pages hotter than others, and many small ones with four frames each.
fn recorded() -> Profile {
    let mut builder = ProfileBuilder::new();
    let small = 600 << 10;
    let big = (SPACE - u64::from(MAPPINGS) * small) / BIG / PAGE * PAGE;
    for number in 0..MAPPINGS {
        let length = if u64::from(number) < BIG { big } else { small };
        let anchor = builder.anchor(site(number, length), length, 0x5000, Level::Exact);
        count(&mut builder, anchor, length);
    }
    builder.finish(Meta {
        source: Source::Sim,
        source_detail: "made up".to_owned(),
        program: Program::default(),
        command: vec!["big".to_owned()],
        complete: true,
        sampled: 0.1,
        observations: 100_000_000,
        instructions: Some(1 << 40),
        native_ns: None,
        footprint: None,
        warnings: Vec::new(),
    })
}

fn site(number: u32, length: u64) -> AnchorKind {
    let frame = |depth: u64| Frame {
        module: "b0e1c2d3f4a5968778695a4b3c2d1e0f11223344".to_owned(),
        path: "/usr/lib/big/libengine.so.2".to_owned(),
        offset: 0x1000 + u64::from(number % 50) * 64 + depth * 0x10000,
        symbol: Some(format!("engine::pool::grow_{}", number % 50)),
        source: Some("src/engine/pool.cc:144".to_owned()),
        function: Some((0x1000, 0x2000)),
    };
    AnchorKind::Alloc {
        frames: (0..4).map(frame).map(Arc::new).collect(),
        class: toll_model::wire::class(length),
        ordinal: number,
        thread: 0,
    }
}

/// All pages touched, in stretches of 256 KiB of which each 17th is hot.
fn count(builder: &mut ProfileBuilder, anchor: u32, length: u64) {
    const STRETCH: u64 = REGION / 8;
    for offset in (0..length).step_by(STRETCH as usize) {
        let stretch = STRETCH.min(length - offset);
        let heat = if (offset / STRETCH) % 17 == 0 {
            1000.0
        } else {
            3.0
        };
        let pages = (stretch / PAGE) as f64;
        let counts = Counts {
            accesses: pages * heat * 10.0,
            misses: pages * heat,
            misses_huge: Some(pages * heat / 50.0),
            l2_spared: 0.0,
            reuse_log2: Some(31.0 + (offset % 3) as f32),
            dependent: Some(0.5),
            huge: false,
        };
        builder.count_span(anchor, offset, stretch, &counts);
    }
}

/// User and system time of this process.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("a Linux system");
    let fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace();
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .map(|n| n.parse::<f64>().unwrap_or(0.0))
        .sum();
    ticks / 100.0
}

/// Most memory that this process ever had.
fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux system");
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kilobytes = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) << 10
}
