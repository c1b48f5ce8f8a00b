// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_model::builder::Meta;
use toll_model::profile::{SiteRows, Source};

use super::*;

fn meta() -> Meta {
    Meta {
        source: Source::Perf,
        source_detail: String::new(),
        program: Default::default(),
        command: vec![],
        complete: true,
        sampled: 1.0,
        observations: 0,
        instructions: None,
        native_ns: None,
        footprint: None,
        warnings: vec![],
    }
}

fn map(start: u64, length: u64, name: &str) -> Map<'_> {
    Map {
        pid: 1,
        start,
        length,
        offset: 0x1000,
        executable: false,
        name,
    }
}

fn places(only: Option<Range<u64>>) -> Places {
    Places::new(only, Layout::new(Some(28)))
}

fn one() -> Counts {
    Counts {
        misses: 1.0,
        ..Counts::default()
    }
}

/// Site name, level and offset of the first row of every site.
fn sites(places: Places) -> Vec<(String, Level, u64)> {
    let (profile, _) = places.finish(meta());
    let row = |a: &SiteRows| (a.site.to_string(), a.site.level, a.rows[0].offset);
    profile.sites.iter().map(row).collect()
}

#[test]
fn mappings_name_what_they_hold() {
    let mut places = places(None);
    places.map(&map(0x5555_5555_0000, 0x10000, "[heap]"));
    places.map(&map(0x7ffc_0000_0000, 0x20000, "[stack]"));
    places.map(&map(0x7f00_0000_0000, 0x100000, "/opt/data"));
    places.map(&map(0x7f10_0000_1000, 0x100000, "//anon"));
    places.map(&map(0x1878_0000_0000, 1 << 30, "//anon"));
    for address in [
        0x5555_5555_3000,
        0x7ffc_0001_f000,
        0x7f00_0000_2000,
        0x7f10_0000_3000,
        0x1878_0040_0000,
    ] {
        places.count(Some(1), None, address, &one());
    }
    assert_eq!(
        sites(places),
        [
            ("heap".to_owned(), Level::Exact, 0x3000),
            ("stack".to_owned(), Level::Exact, 0),
            ("file /opt/data".to_owned(), Level::Exact, 0x3000),
            ("other anonymous memory".to_owned(), Level::Kind, 0x3000),
            ("address 0x187800000000".to_owned(), Level::Exact, 0x40_0000),
        ]
    );
}

#[test]
fn a_new_mapping_replaces_the_part_that_it_covers() {
    let mut places = places(None);
    places.map(&map(0x7f00_0000_0000, 0x10000, "/a"));
    places.map(&map(0x7f00_0000_4000, 0x4000, "/b"));
    for address in [0x7f00_0000_3000u64, 0x7f00_0000_4000, 0x7f00_0000_8000] {
        places.count(Some(1), None, address, &one());
    }
    assert_eq!(
        sites(places),
        [
            ("file /a".to_owned(), Level::Exact, 0x4000),
            ("file /b".to_owned(), Level::Exact, 0x1000),
        ]
    );
}

#[test]
fn bare_addresses_become_spans_and_random_ones_are_never_advised() {
    let mut places = places(None);
    for address in [0x1878_0020_0000u64, 0x1878_3000_0000, 0x7f12_3456_7000] {
        places.count(Some(1), None, address, &one());
    }
    assert_eq!(
        sites(places),
        [
            ("address 0x187800200000".to_owned(), Level::Exact, 0),
            (
                "address 0x7f1234400000".to_owned(),
                Level::NotFound,
                0x160000
            ),
        ]
    );
}

#[test]
fn a_range_names_its_own_site() {
    let mut places = places(Some(0x7f00_0000_0000..0x7f00_4000_0000));
    places.map(&map(0x7f00_0000_0000, 1 << 30, "//anon"));
    assert!(!places.wants(0x7f00_4000_0000));
    places.count(Some(1), None, 0x7f00_0020_0000, &one());
    assert_eq!(
        sites(places),
        [("address 0x7f0000000000".to_owned(), Level::Exact, 0x20_0000)]
    );
}

#[test]
fn children_have_their_parents_mappings_until_they_exec() {
    let mut places = places(None);
    places.map(&map(0x5555_5555_0000, 0x10000, "[heap]"));
    places.fork(2, 1);
    places.count(Some(2), None, 0x5555_5555_0000, &one());
    places.exec(2);
    places.count(Some(2), None, 0x5555_5555_0000, &one());
    let names: Vec<String> = sites(places).into_iter().map(|a| a.0).collect();
    assert_eq!(names, ["heap", "address 0x555555400000"]);
}

#[test]
fn blocks_are_found_while_they_live() {
    let kind = |ordinal| SiteKind::Alloc {
        frames: vec![],
        class: 21,
        ordinal,
        thread: 0,
        shared: false,
    };
    let block = |ordinal, born_ns, died_ns| Block {
        kind: kind(ordinal),
        level: Level::Exact,
        process: 1,
        start: 0x7f00_0000_0010,
        length: 4 << 20,
        born_ns,
        died_ns,
    };
    let mut places = places(None).with_blocks(vec![block(0, 10, 20), block(1, 30, 40)]);
    places.count(Some(1), Some(35), 0x7f00_0000_0010 + 8192, &one());
    places.count(Some(1), Some(25), 0x7f00_0000_0010 + 8192, &one());
    places.count(Some(2), Some(35), 0x7f00_0000_0010 + 8192, &one());
    let (profile, _) = places.finish(meta());
    assert_eq!(profile.sites[0].site.kind, kind(1));
    assert_eq!(profile.sites[0].site.misalignment, 0);
    assert_eq!(profile.sites[0].rows[0].offset, 8192);
    assert_eq!(profile.sites[1].rows[0].misses, 2.0);
}
