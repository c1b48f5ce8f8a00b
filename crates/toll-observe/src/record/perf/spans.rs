// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sites for addresses in no known mapping.

use toll_model::REGION;
use toll_model::profile::SiteRows;
use toll_model::site::{Level, Site, SiteKind};

use super::layout::Layout;

/// Addresses further apart than this belong to different spans.
const SPAN_GAP: u64 = 1 << 30;

/// Splits rows with addresses as offsets into one site per contiguous span.
pub fn spans(all: SiteRows, first_id: u32, layout: &Layout) -> Vec<SiteRows> {
    let mut spans: Vec<SiteRows> = Vec::new();
    let mut end = 0;
    for mut row in all.rows {
        let address = row.offset;
        let start = match spans.last() {
            Some(SiteRows { site, .. }) if address - end < SPAN_GAP => match site.kind {
                SiteKind::Address { start } => start,
                _ => address,
            },
            _ => {
                let start = address / REGION * REGION;
                let random = layout.is_random(address);
                spans.push(SiteRows {
                    site: Site {
                        id: first_id + spans.len() as u32,
                        kind: SiteKind::Address { start },
                        length: 0,
                        misalignment: 0,
                        level: if random {
                            Level::NotFound
                        } else {
                            Level::Exact
                        },
                    },
                    rows: Vec::new(),
                    freed: false,
                    places: Vec::new(),
                    address: None,
                });
                start
            }
        };
        end = address + row.length;
        row.offset = address - start;
        if let Some(span) = spans.last_mut() {
            span.site.length = (end - start).next_multiple_of(REGION);
            span.rows.push(row);
        }
    }
    spans
}
