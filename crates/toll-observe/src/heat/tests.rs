// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_model::profile::Row;
use toll_model::site::{Level, SiteKind};

use super::*;

fn rows(misalignment: u64, length: u64, list: &[(u64, u64, f64)]) -> SiteRows {
    SiteRows {
        site: Site {
            id: 0,
            kind: SiteKind::Heap,
            length,
            misalignment,
            level: Level::Exact,
        },
        rows: list
            .iter()
            .map(|&(offset, length, misses)| Row {
                offset,
                length,
                accesses: 0.0,
                misses,
                misses_huge: None,
                l2_spared: 0.0,
                reuse_log2: None,
                dependent: None,
                touched_pages: (length / PAGE) as u32,
                huge: false,
            })
            .collect(),
        freed: false,
        places: Vec::new(),
        address: None,
    }
}

fn misses(strip: &Strip) -> Vec<f64> {
    strip.cells.iter().map(|c| c.misses).collect()
}

#[test]
fn regions_follow_the_alignment_of_the_run() {
    let aligned = rows(0, 2 * REGION, &[(0, PAGE, 1.0), (REGION - PAGE, PAGE, 2.0)]);
    assert_eq!(misses(&Strip::new(&aligned, 100)), [3.0, 0.0]);
    let shifted = rows(
        PAGE,
        2 * REGION,
        &[(0, PAGE, 1.0), (REGION - PAGE, PAGE, 2.0)],
    );
    let strip = Strip::new(&shifted, 100);
    assert_eq!(misses(&strip), [1.0, 2.0, 0.0]);
    assert_eq!(strip.offset(1), REGION - PAGE);
}

#[test]
fn a_row_over_several_regions_is_split_by_bytes() {
    let strip = Strip::new(&rows(0, 0, &[(REGION / 2, 2 * REGION, 4.0)]), 100);
    assert_eq!(misses(&strip), [1.0, 2.0, 1.0]);
    assert_eq!(strip.cells.iter().map(|c| c.touched).sum::<f64>(), 1024.0);
}

#[test]
fn too_many_regions_share_cells_and_nothing_is_lost() {
    let list: Vec<_> = (0..512).map(|i| (i * REGION, PAGE, 1.0)).collect();
    let strip = Strip::new(&rows(0, 512 * REGION, &list), 80);
    assert_eq!(strip.unit, 7 * REGION);
    assert_eq!(strip.cells.len(), 74);
    assert_eq!(misses(&strip).iter().sum::<f64>(), 512.0);
}

#[test]
fn impossible_lengths_do_no_harm() {
    let strip = Strip::new(&rows(PAGE, u64::MAX, &[(1 << 56, PAGE, 5.0)]), 80);
    assert!(strip.cells.len() <= 80);
    assert_eq!(misses(&strip).iter().sum::<f64>(), 5.0);
    assert_eq!(Strip::new(&rows(0, 0, &[]), 80).cells.len(), 1);
}

#[test]
fn any_miss_is_visible_and_the_peak_is_full() {
    assert_eq!(level(0.0, 100.0), 0);
    assert_eq!(level(0.001, 100.0), 1);
    assert_eq!(level(100.0, 100.0), 8);
    assert_eq!(level(25.0, 100.0), 4);
    assert_eq!(level(1.0, 0.0), 0);
}
