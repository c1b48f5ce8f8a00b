// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machine-wide state: huge page settings, memory, limits.

mod memory;
mod reporting;
mod thp;

pub use memory::{
    Charged, Hugetlb, Limit, Meminfo, buddyinfo_free_regions, charged, effective_memory, hugetlb,
    limit_of, max_map_count, meminfo, memory_headroom, memory_in_use, memory_limit,
};
pub use reporting::{FreePageReporting, free_page_reporting};
pub use thp::{Khugepaged, Mode, Thp, selected, size_setting};

use crate::Root;

/// Returns the kernel's release, for instance `6.12.48-amd64`; empty if it cannot be read.
pub fn kernel_release(root: &Root) -> String {
    root.line("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// Returns major and minor number of the kernel's release.
pub fn kernel_version(root: &Root) -> Option<(u32, u32)> {
    let release = kernel_release(root);
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}
