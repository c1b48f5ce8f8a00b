// SPDX-License-Identifier: MIT OR Apache-2.0
//! Determines the current backing of a process's regions: nothing, 4 KiB pages, or a huge page.
//!
//! Uses PAGEMAP_SCAN (Linux 6.7), which reads page tables without side effects on pages or accessed
//! bits.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use toll_model::{PAGE, REGION};

use crate::Root;

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610_u32 as libc::Ioctl;
const PRESENT: u64 = 1 << 3;
const HUGE: u64 = 1 << 6;

/// `struct pm_scan_arg` of <linux/fs.h>.
#[repr(C)]
#[derive(Default)]
struct Request {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// `struct page_region` of <linux/fs.h>.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Run {
    start: u64,
    end: u64,
    categories: u64,
}

/// Regions by backing, ascending. Regions without any page are in neither list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backing {
    /// With at least one 4 KiB page.
    pub small: Vec<u64>,
    /// Mapped by one huge page.
    pub huge: Vec<u64>,
}

impl Backing {
    /// Whether a region is in a list.
    pub(super) fn has(&self, region: u64) -> bool {
        [&self.small, &self.huge]
            .iter()
            .any(|list| list.binary_search(&region).is_ok())
    }

    /// Returns the backing of the regions of `ranges` (multiples of 2 MiB) in process `pid`.
    ///
    /// # Errors
    /// No such process, not permitted, or a kernel without PAGEMAP_SCAN.
    pub fn of(root: &Root, pid: u32, ranges: &[(u64, u64)]) -> io::Result<Backing> {
        // Opened each time: the file refers to the address space at the time of the open, which
        // exec replaces.
        let pagemap = File::open(root.path(format!("/proc/{pid}/pagemap")))?;
        let mut backing = Backing::default();
        for range in ranges {
            // The kernel inverts the categories in the second argument before the comparison.
            scan(&pagemap, *range, HUGE, &mut backing.small)?;
            scan(&pagemap, *range, 0, &mut backing.huge)?;
        }
        Ok(backing)
    }
}

/// Adds the regions of `range` with present huge pages, or with present other pages if `inverted`
/// is set.
fn scan(
    pagemap: &File,
    (mut start, end): (u64, u64),
    inverted: u64,
    regions: &mut Vec<u64>,
) -> io::Result<()> {
    let mut runs = [Run::default(); 512];
    while start < end {
        let mut request = Request {
            size: size_of::<Request>() as u64,
            start,
            end,
            vec: runs.as_mut_ptr() as u64,
            vec_len: runs.len() as u64,
            category_inverted: inverted,
            category_mask: PRESENT | HUGE,
            return_mask: PRESENT,
            ..Request::default()
        };
        // SAFETY: the request and the buffer that it names outlive the call.
        let found = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut request) };
        if found < 0 {
            return Err(io::Error::last_os_error());
        }
        for run in &runs[..found as usize] {
            add_regions(run, regions);
        }
        // An advance of less than a page would be no progress.
        start = request.walk_end.max(start + PAGE);
    }
    Ok(())
}

/// Adds the regions that a run of pages covers; the last one may already be in the list.
fn add_regions(run: &Run, regions: &mut Vec<u64>) {
    let first = run.start / REGION * REGION;
    for region in (first..run.end).step_by(REGION as usize) {
        if regions.last() != Some(&region) {
            regions.push(region);
        }
    }
}

#[cfg(test)]
mod tests;
