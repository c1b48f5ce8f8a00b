// SPDX-License-Identifier: MIT OR Apache-2.0
//! Own anonymous memory of a known page size, to measure on.

use std::io;
use std::ptr::{self, NonNull};

use toll_model::{PAGE, REGION};

use crate::hand::Advice;

/// What its pages shall be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    Small,
    Huge,
}

/// Private anonymous memory that begins on a region boundary; unmapped when dropped.
pub(super) struct Memory {
    mapping: NonNull<u8>,
    mapped: usize,
    /// Start of the aligned part.
    base: NonNull<u8>,
    length: u64,
}

impl Memory {
    /// Reserves `length` bytes (a multiple of a region); nothing is touched yet.
    pub(super) fn reserve(length: u64, pages: Pages) -> io::Result<Memory> {
        let mapped = usize::try_from(length + REGION).map_err(io::Error::other)?;
        // SAFETY: a fresh private mapping at an address of the kernel's choice.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = mapping.as_ptr().align_offset(REGION as usize);
        let memory = Memory {
            mapping,
            mapped,
            // SAFETY: the mapping is longer than `length` by a region, and `skip` is less.
            base: unsafe { mapping.add(skip) },
            length,
        };
        memory.choose(pages)?;
        Ok(memory)
    }

    pub(super) fn base(&self) -> *const u8 {
        self.base.as_ptr()
    }

    /// Chooses the size of the pages of later faults.
    pub(super) fn choose(&self, pages: Pages) -> io::Result<()> {
        self.advise(
            0,
            self.length,
            match pages {
                Pages::Small => Advice::NoHuge,
                Pages::Huge => Advice::Huge,
            },
        )
    }

    pub(super) fn advise(&self, offset: u64, length: u64, advice: Advice) -> io::Result<()> {
        assert!(offset + length <= self.length);
        // SAFETY: the range is ours, and none of these kinds of advice changes its content.
        let result = unsafe {
            let start = self.base.add(offset as usize).as_ptr().cast();
            libc::madvise(start, length as usize, advice.number())
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Writes one byte of the page at `offset`.
    pub(super) fn touch(&self, offset: u64) {
        assert!(offset < self.length);
        // SAFETY: inside our own writable mapping.
        unsafe { self.base.add(offset as usize).as_ptr().write_volatile(0) };
    }

    /// Touches every small page of `from..to`.
    pub(super) fn touch_pages(&self, from: u64, to: u64) {
        (from..to)
            .step_by(PAGE as usize)
            .for_each(|offset| self.touch(offset));
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our own mapping, as it was made; nothing refers to it any more.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}
