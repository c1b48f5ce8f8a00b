// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mapped parts of a morsel.

use std::fs::File;
use std::ptr;

use rustix::io::Errno;
use rustix::mm::{self, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::remote::Advice;

/// Populates a part of a mapping.
pub(super) fn populate(part: &mut [u8]) -> Result<(), Errno> {
    // SAFETY: the range is ours, and its content does not change.
    unsafe {
        madvise(
            part.as_mut_ptr().cast(),
            part.len(),
            mm::Advice::LinuxPopulateWrite,
        )
    }
}

/// Collapses 4 KiB pages of a part of a mapping into huge pages, as far as blocks are free (Linux
/// 6.1).
pub(super) fn collapse(part: &mut [u8]) {
    // SAFETY: the range is ours, and its content does not change.
    unsafe {
        libc::madvise(
            part.as_mut_ptr().cast(),
            part.len(),
            Advice::Collapse.number(),
        )
    };
}

/// A writable mapping of a part of a morsel.
pub(super) struct Window {
    start: *mut u8,
    length: usize,
}

impl Window {
    pub fn map(file: &File, offset: u64, length: usize) -> Result<Window, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                file,
                offset,
            )
        }?;
        Ok(Window {
            start: start.cast(),
            length,
        })
    }

    /// Anonymous memory.
    pub fn anonymous(length: usize) -> Result<Window, Errno> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), length, protection, MapFlags::PRIVATE) }?;
        Ok(Window {
            start: start.cast(),
            length,
        })
    }

    /// Lets faults compact for a huge page. Failure is ignored.
    pub fn advise_huge(&mut self) {
        let advice = mm::Advice::LinuxHugepage;
        // SAFETY: the range is ours, and its content does not change.
        let _ = unsafe { madvise(self.start.cast(), self.length, advice) };
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping lives as long as this value; the file has no name yet, so no other
        // process maps it.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no reference to it remains.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}
