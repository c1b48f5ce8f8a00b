// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cost of reclaiming a page: clean pages of a temporary file, by MADV_PAGEOUT. It needs no swap.
//! On a memory file system nothing can be reclaimed, and the cost is missing.

use std::env;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use rustix::fs::{Mode, OFlags};
use toll_model::PAGE;

use super::clock::timed;

/// Pages reclaimed per batch.
const BATCH: usize = 64;
/// Batches in the file.
const BATCHES: usize = 32;
const PAGE_BYTES: usize = PAGE as usize;
const LENGTH: usize = BATCHES * BATCH * PAGE_BYTES;

/// A mapped unnamed file.
pub(super) struct Reclaim {
    _file: File,
    mapping: NonNull<u8>,
    next: usize,
}

/// A batch that was reclaimed.
struct Batch {
    /// Number of its first page.
    first: usize,
    /// Number of pages that were reclaimed.
    reclaimed: usize,
    /// CPU time per page, ns.
    per_page: f64,
}

impl Reclaim {
    /// Returns `None` if such a file cannot be created.
    pub fn new() -> Option<Reclaim> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(env::temp_dir(), flags, Mode::RUSR | Mode::WUSR).ok()?;
        let mut file = File::from(file);
        file.write_all(&vec![1; LENGTH]).ok()?;
        // Dirty pages would be written back first.
        file.sync_all().ok()?;
        // SAFETY: a new mapping of our own file at an address that the kernel chooses; the advice
        // affects only its pages. MADV_RANDOM disables readahead.
        let mapping = unsafe {
            let fd = file.as_raw_fd();
            libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED);
            let flags = libc::MAP_SHARED;
            let at = libc::mmap(ptr::null_mut(), LENGTH, libc::PROT_READ, flags, fd, 0);
            if at == libc::MAP_FAILED {
                return None;
            }
            libc::madvise(at, LENGTH, libc::MADV_RANDOM);
            NonNull::new(at.cast())?
        };
        Some(Reclaim {
            _file: file,
            mapping,
            next: 0,
        })
    }

    /// Returns the CPU time per page of a batch; `None` if most pages were not reclaimed.
    pub fn page(&mut self) -> Option<f64> {
        self.next_batch().map(|batch| batch.per_page)
    }

    /// Returns the CPU times per page of the reclaim of a batch, and of the faults that read it
    /// again; `None` if most pages were not reclaimed.
    pub fn page_and_fault(&mut self) -> Option<(f64, f64)> {
        let batch = self.next_batch()?;
        // The pages that stayed are mapped still and cause no fault.
        let faults = timed(|| self.read(batch.first));
        Some((batch.per_page, faults / batch.reclaimed as f64))
    }

    /// Reads and reclaims the next batch; `None` if most pages were not reclaimed.
    fn next_batch(&mut self) -> Option<Batch> {
        let first = self.next % BATCHES * BATCH;
        self.next += 1;
        self.read(first);
        let start = self.page_at(first).cast();
        // SAFETY: our own mapping; the pages are read from the file again.
        let ns = timed(|| unsafe {
            libc::madvise(start, BATCH * PAGE_BYTES, libc::MADV_PAGEOUT);
        });
        let reclaimed = BATCH - self.present(first);
        (reclaimed > BATCH / 2).then(|| Batch {
            first,
            reclaimed,
            per_page: ns / reclaimed as f64,
        })
    }

    /// Reads each page of a batch.
    fn read(&self, batch: usize) {
        for page in 0..BATCH {
            // SAFETY: inside our mapping, which is as long as the file.
            unsafe { self.page_at(batch + page).read_volatile() };
        }
    }

    /// Number of pages of a batch that are in memory.
    fn present(&self, batch: usize) -> usize {
        let mut present = [0u8; BATCH];
        // SAFETY: `present` has a byte for each page of the range.
        unsafe {
            let start = self.page_at(batch).cast();
            libc::mincore(start, BATCH * PAGE_BYTES, present.as_mut_ptr())
        };
        present.iter().filter(|byte| *byte & 1 == 1).count()
    }

    fn page_at(&self, page: usize) -> *mut u8 {
        assert!(page * PAGE_BYTES < LENGTH);
        // SAFETY: inside our mapping.
        unsafe { self.mapping.as_ptr().add(page * PAGE_BYTES) }
    }
}

impl Drop for Reclaim {
    fn drop(&mut self) {
        // SAFETY: our own mapping with its original bounds; no reference to it remains.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), LENGTH) };
    }
}
