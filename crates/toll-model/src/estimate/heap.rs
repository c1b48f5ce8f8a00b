// SPDX-License-Identifier: MIT OR Apache-2.0
//! The heap: single regions, or all of it.

use super::chunk::Chunk;
use super::region::time_at_fault;
use crate::cost::CostTable;
use crate::plan::Estimate;
use crate::profile::Profile;
use crate::site::SiteKind;

/// Whether the allocator's own switch, which makes the whole heap huge at its first touch, gains
/// more than collapsing the regions that pay; if so, the heap's chunks get that time.
pub(super) fn is_better_whole(
    profile: &Profile,
    chunks: &mut [Chunk],
    costs: &CostTable,
    warm: bool,
) -> bool {
    let is_heap = |chunk: &&mut Chunk| {
        profile.sites[chunk.site as usize].site.kind == SiteKind::Heap && chunk.barred.is_none()
    };
    let mut heap: Vec<&mut Chunk> = chunks.iter_mut().filter(is_heap).collect();
    let mut gains = [0.0; 2];
    for chunk in &heap {
        let gain = |time: Estimate| chunk.benefit.median - time.median - chunk.bloat;
        gains[0] += gain(time_at_fault(chunk, costs, warm));
        gains[1] += gain(chunk.time).max(0.0);
    }
    let whole = gains[0] > gains[1];
    if whole {
        for chunk in &mut heap {
            chunk.time = time_at_fault(chunk, costs, warm);
        }
    }
    whole
}
