// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arbitrary profiles for the tests.

use proptest::prelude::*;
use toll_model::profile::{Profile, SiteRows};
use toll_model::site::SiteKind;
use toll_model::{PAGE, REGION};
use toll_testkit::model::{alloc, profile, row, site, site_rows};

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
        freed,
        ..site_rows(site, rows)
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
        Just(SiteKind::Shared {
            path: "/dev/shm/x".to_owned()
        }),
    ]
}
