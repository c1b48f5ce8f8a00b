// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many mappings a process can spare.
//!
//! MADV_HUGEPAGE on a part of a mapping splits it. A process that runs out of
//! mappings (`vm.max_map_count`) has its own mmap refused, which no advice is
//! worth.

use crate::{Root, sys};

/// Most splits for one process, whatever the limit.
const MOST_SPLITS: u64 = 1000;

/// How many splits a process with `mappings` mappings can take: 5 % of what is left
/// of the limit, and not more than 1,000. One advised range inside a mapping costs two.
pub fn map_budget(root: &Root, mappings: usize) -> u64 {
    let left = sys::max_map_count(root).saturating_sub(mappings as u64);
    (left / 20).min(MOST_SPLITS)
}
