// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles for the kernel: content, names, and the length limit.

mod common;

use common::any_profile;
use proptest::prelude::*;
use toll_model::REGION;
use toll_model::estimate::{Options, estimate};
use toll_model::kernel::{KernelProfile, MAX_BYTES, kernel_profile};
use toll_model::profile::{Place, Profile, SiteRows};
use toll_model::site::SiteKind;
use toll_testkit::model::{alloc, costs, profile, row, site, site_rows};

const RUN_NS: f64 = 12e9;

fn rows(kind: SiteKind, id: u32, misses: &[f64], places: Vec<Place>) -> SiteRows {
    let length = misses.len() as u64 * REGION;
    let row = |(n, &m): (usize, &f64)| row(n as u64 * REGION, REGION, m);
    let rows = misses.iter().enumerate().map(row).collect();
    SiteRows {
        places,
        ..site_rows(site(id, kind, length), rows)
    }
}

fn place(offset: u64, length: u64, ordinal: u32, at: u64) -> Place {
    Place {
        offset,
        length,
        class: 23,
        protection: 3,
        ordinal,
        at,
    }
}

fn made(profile: &Profile) -> KernelProfile {
    let plan = estimate(profile, &costs(), Options::default());
    let zeroed = Some(("/usr/bin/program", 0x5000));
    kernel_profile(profile, &plan, zeroed, RUN_NS)
}

/// Returns site and bytes of each row.
fn lines(made: &KernelProfile) -> Vec<String> {
    let text = made.text.lines().skip(3);
    let words = text.map(|line| line.split(' ').collect::<Vec<_>>());
    let rows = words.filter(|words| words[0] != "end");
    rows.map(|words| words[..words.len() - 3].join(" "))
        .collect()
}

#[test]
fn a_block_is_named_by_the_mapping_that_it_lay_in() {
    let block = alloc(1, 4 * REGION, 0);
    let at = [place(0, 4 * REGION, 7, 0x1000)];
    let made = made(&profile(vec![rows(
        block,
        0,
        &[5e6, 5e6, 0.0, 9e6],
        at.into(),
    )]));
    assert!(
        made.text
            .starts_with("mm_profile 1\nprogram program\nrun 12000000000\n")
    );
    assert!(made.text.ends_with("\nend 3\n"), "{}", made.text);
    // Equal neighbours are one row.
    assert_eq!(
        lines(&made),
        [
            "mmap 7 23 3 0x1000 0x401000",
            "mmap 7 23 3 0x401000 0x601000",
            "mmap 7 23 3 0x601000 0x801000"
        ]
    );
    assert_eq!((made.carried, made.lost), (4, 0));
    assert_eq!(made.lost_ns, 0.0);
}

#[test]
fn what_lay_in_two_mappings_has_a_row_in_each() {
    let at = vec![
        place(0, REGION / 2, 0, REGION),
        place(REGION / 2, REGION, 1, 0),
    ];
    let made = made(&profile(vec![rows(SiteKind::Anonymous, 0, &[5e6], at)]));
    assert_eq!(
        lines(&made),
        ["mmap 0 23 3 0x200000 0x300000", "mmap 1 23 3 0x0 0x100000"]
    );
}

#[test]
fn heap_and_zeroed_data_need_no_mapping() {
    let file = |path: &str| SiteKind::File {
        build_id: String::new(),
        path: path.to_owned(),
    };
    let made = made(&profile(vec![
        rows(SiteKind::Heap, 0, &[1e6], Vec::new()),
        rows(file("/usr/bin/program"), 1, &[1e6], Vec::new()),
        rows(file("/usr/lib/other.so"), 2, &[1e6], Vec::new()),
        rows(SiteKind::Stack, 3, &[1e6], Vec::new()),
    ]));
    assert_eq!(lines(&made), ["heap 0x0 0x200000", "bss 0x0 0x1fb000"]);
    assert_eq!((made.carried, made.lost), (2, 2));
    assert!(made.lost_ns >= 0.0 && made.carried_ns > 0.0);
}

#[test]
fn of_too_many_rows_the_richest_are_kept() {
    let misses: Vec<f64> = (0..60_000)
        .map(|n| f64::from(n * 7919 % 997) * 1e4 + f64::from(n))
        .collect();
    let length = misses.len() as u64 * REGION;
    let at = vec![place(0, length, 0, 0)];
    let made = made(&profile(vec![rows(SiteKind::Anonymous, 0, &misses, at)]));
    assert!(made.text.len() <= MAX_BYTES, "{}", made.text.len());
    assert!(made.rows > 10_000 && made.rows < 60_000, "{}", made.rows);
    assert!(made.text.ends_with(&format!("\nend {}\n", made.rows)));
}

proptest! {
    /// Rows are sorted, disjoint, and page-aligned: the kernel rejects anything else.
    #[test]
    fn the_kernel_takes_it(profile in any_profile()) {
        let made = made(&profile);
        let mut last: Option<(String, u64)> = None;
        for line in lines(&made) {
            let mut words: Vec<&str> = line.split(' ').collect();
            let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
            let [begin, end] = [hex(words[words.len() - 2]), hex(words[words.len() - 1])];
            words.truncate(words.len() - 2);
            prop_assert!(begin < end && begin % 4096 == 0 && end % 4096 == 0, "{line}");
            if let Some((site, before)) = &last {
                prop_assert!(*site != words.join(" ") || *before <= begin, "{line}");
            }
            last = Some((words.join(" "), end));
        }
    }
}
