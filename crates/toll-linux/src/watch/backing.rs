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
const PAGEMAP_SCAN: u64 = 0xc060_6610;
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
mod tests {
    use super::*;

    /// An aligned mapping: untouched regions, 4 KiB regions and (if the kernel provides one) huge
    /// regions.
    struct Memory(*mut u8, u64);

    impl Memory {
        fn new(regions: u64) -> Memory {
            let length = (regions + 1) * REGION;
            // SAFETY: a new mapping of our own.
            let at = unsafe {
                libc::mmap(
                    std::ptr::null_mut(),
                    length as usize,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                    -1,
                    0,
                )
            };
            assert_ne!(at, libc::MAP_FAILED);
            Memory(at.cast(), length)
        }

        fn region(&self, number: u64) -> u64 {
            (self.0 as u64).next_multiple_of(REGION) + number * REGION
        }

        fn advise(&self, number: u64, advice: i32) {
            // SAFETY: the region lies in our mapping.
            let done =
                unsafe { libc::madvise(self.region(number) as *mut _, REGION as usize, advice) };
            assert_eq!(done, 0);
        }

        fn touch(&self, number: u64, page: u64) {
            // SAFETY: the page lies in our mapping.
            unsafe {
                ((self.region(number) + page * PAGE) as *mut u8).write_volatile(1);
            }
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: our mapping, which is no longer used.
            unsafe { libc::munmap(self.0.cast(), self.1 as usize) };
        }
    }

    #[test]
    fn regions_are_told_apart() {
        let memory = Memory::new(4);
        memory.advise(1, libc::MADV_NOHUGEPAGE);
        memory.advise(3, libc::MADV_HUGEPAGE);
        for page in [0, 2, 511] {
            memory.touch(1, page);
        }
        memory.touch(3, 100);
        let range = (memory.region(0), memory.region(4));
        let root = Root::system();
        let backing = match Backing::of(&root, std::process::id(), &[range]) {
            Ok(backing) => backing,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let smaps = crate::proc::smaps(&root, std::process::id()).unwrap();
        let of_region = |smap: &&crate::proc::Smap| smap.mapping.start == memory.region(3);
        let is_huge = smaps.iter().find(of_region).unwrap().anon_huge == REGION;
        let (small, huge) = ([1, 3].map(|n| memory.region(n)), [memory.region(3)]);
        match is_huge {
            true => assert_eq!(
                (&backing.small[..], &backing.huge[..]),
                (&small[..1], &huge[..])
            ),
            false => assert_eq!(
                (&backing.small[..], &backing.huge[..]),
                (&small[..], &[][..])
            ),
        }
    }

    #[test]
    fn nobody_has_no_backing() {
        // Ids end at 2^22.
        assert!(Backing::of(&Root::system(), 1 << 23, &[(0, REGION)]).is_err());
    }
}
