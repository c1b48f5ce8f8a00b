// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observations become rows: counts are neither lost nor added, and files stay small.

use proptest::prelude::*;
use toll_model::builder::{Counts, Meta, ProfileBuilder};
use toll_model::profile::{Profile, Program, Source};
use toll_model::site::{Level, SiteKind};
use toll_model::{PAGE, REGION};
use toll_testkit::model::alloc;

fn meta() -> Meta {
    Meta {
        source: Source::Sim,
        source_detail: String::new(),
        program: Program::default(),
        command: Vec::new(),
        complete: true,
        sampled: 1.0,
        observations: 1,
        instructions: None,
        native_ns: None,
        footprint: None,
        warnings: Vec::new(),
    }
}

fn misses(misses: f64) -> Counts {
    Counts {
        misses,
        ..Counts::default()
    }
}

#[test]
fn the_same_kind_is_the_same_site() {
    let mut builder = ProfileBuilder::new();
    let a = builder.site(SiteKind::Heap, 100 * PAGE, 8192, Level::Exact);
    let b = builder.site(alloc(1, REGION, 0), REGION, 0, Level::Exact);
    assert_ne!(a, b);
    assert_eq!(builder.site(SiteKind::Heap, 300 * PAGE, 0, Level::Class), a);
    assert_ne!(
        builder.site(alloc(1, REGION, 1), REGION, 0, Level::Exact),
        b
    );
    builder.count(a, 5, &misses(1.0));
    builder.count(a, 299 * PAGE, &misses(2.0));
    builder.freed(a);
    let profile = builder.finish(meta());
    // The sites without a count are left out.
    assert_eq!(profile.sites.len(), 1);
    let heap = &profile.sites[0];
    assert_eq!(
        (heap.site.length, heap.site.misalignment),
        (300 * PAGE, 8192)
    );
    assert!(heap.freed && heap.site.level == Level::Class);
    assert_eq!(heap.rows.len(), 2);
    assert_eq!((heap.rows[0].offset, heap.rows[1].offset), (0, 299 * PAGE));
    assert_eq!(profile.footprint, 2 * PAGE);
}

#[test]
fn means_are_weighted_by_misses() {
    let mut builder = ProfileBuilder::new();
    let heap = builder.site(SiteKind::Heap, PAGE, 0, Level::Exact);
    let counts = |misses, reuse: f32, dependent: f32| Counts {
        misses,
        misses_huge: Some(1.0),
        l2_spared: 0.0,
        reuse_log2: Some(reuse),
        dependent: Some(dependent),
        ..Counts::default()
    };
    builder.count(heap, 0, &counts(3.0, 20.0, 1.0));
    builder.count(heap, 0, &counts(1.0, 28.0, 0.0));
    let row = &builder.finish(meta()).sites[0].rows[0];
    assert_eq!((row.misses, row.misses_huge), (4.0, Some(2.0)));
    assert_eq!((row.reuse_log2, row.dependent), (Some(22.0), Some(0.75)));
    assert_eq!(row.touched_pages, 1);
}

#[test]
fn big_sites_have_coarse_rows() {
    let mut builder = ProfileBuilder::new();
    let big = builder.site(SiteKind::Heap, 1 << 30, 0, Level::Exact);
    for page in 0..32 {
        builder.count(big, page * PAGE, &misses((page * page) as f64));
    }
    let rows = &builder.finish(meta()).sites[0].rows;
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].length, rows[0].touched_pages), (64 << 10, 16));
}

#[test]
fn equal_neighbours_are_one_row_up_to_256_kib() {
    let mut builder = ProfileBuilder::new();
    let heap = builder.site(SiteKind::Heap, REGION, 0, Level::Exact);
    for page in 0..512 {
        builder.count(heap, page * PAGE, &misses(7.0));
    }
    let rows = &builder.finish(meta()).sites[0].rows;
    assert_eq!(rows.len(), 8);
    assert!(
        rows.iter()
            .all(|row| row.misses == 448.0 && row.touched_pages == 64)
    );
}

#[test]
fn a_huge_process_stays_small() {
    let mut builder = ProfileBuilder::new();
    let mut touched = 0;
    for block in 0..8 {
        let id = builder.site(alloc(block, 8 << 30, 0), 8 << 30, 0, Level::Exact);
        for offset in (0..8u64 << 30).step_by(64 << 10) {
            builder.count(id, offset, &misses((offset >> 16) as f64));
            touched += 1;
        }
    }
    let profile = builder.finish(meta());
    let rows: usize = profile.sites.iter().map(|site| site.rows.len()).sum();
    assert!(rows <= 270_000, "{rows}");
    assert_eq!(profile.footprint, touched * PAGE);
}

#[test]
fn what_cannot_be_is_dropped() {
    let mut builder = ProfileBuilder::new();
    let heap = builder.site(SiteKind::Heap, PAGE, 0, Level::Exact);
    builder.count(heap, 0, &misses(f64::NAN));
    builder.count(heap, 0, &misses(-1.0));
    builder.count(heap, u64::MAX, &misses(1.0));
    builder.count_span(heap, 0, 0, &misses(1.0));
    assert!(builder.finish(meta()).sites.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_lost(
        spans in prop::collection::vec((0u64..4000, 1u64..300, 0u32..1000, 0usize..3), 1..60),
    ) {
        let mut builder = ProfileBuilder::new();
        let kinds = [SiteKind::Heap, SiteKind::Anonymous, alloc(1, 1 << 30, 0)];
        let ids = kinds.map(|kind| builder.site(kind, REGION, 0, Level::Exact));
        let mut pages = std::collections::HashSet::new();
        let mut total = 0.0;
        for &(page, count, misses, site) in &spans {
            let counts = Counts { accesses: 1.0, misses: misses.into(), ..Counts::default() };
            builder.count_span(ids[site], page * PAGE, count * PAGE, &counts);
            pages.extend((page..page + count).map(|page| (site, page)));
            total += f64::from(misses);
        }
        let profile = builder.finish(meta());
        // Rounding to a thousandth per row.
        prop_assert!((profile.misses() - total).abs() < 0.01 * profile.rows().count() as f64);
        prop_assert_eq!(profile.footprint, pages.len() as u64 * PAGE);
        prop_assert!(profile.rows().all(|row| row.length <= 256 << 10));
        let text = profile.to_json().unwrap();
        prop_assert!(Profile::from_json(text).is_ok());
    }
}
