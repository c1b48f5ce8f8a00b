// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits the number of mappings that advice adds to a process.
//!
//! MADV_HUGEPAGE on a part of a mapping splits it. A process that reaches its limit
//! (`vm.max_map_count`) gets errors from its own mmap, which outweighs any gain.

use crate::{Root, sys};

/// Maximum number of splits per process, independent of the limit.
const MOST_SPLITS: u64 = 1000;

/// Returns the number of splits that a process with `mappings` mappings can take: 5 % of the rest
/// of the limit, at most 1,000. One advised range inside a mapping costs two.
pub fn map_budget(root: &Root, mappings: usize) -> u64 {
    let left = sys::max_map_count(root).saturating_sub(mappings as u64);
    (left / 20).min(MOST_SPLITS)
}
