// SPDX-License-Identifier: MIT OR Apache-2.0
//! Anonymous memory of this process, for measurements and for warming up.

use std::io;
use std::ptr::{self, NonNull};

use toll_model::{PAGE, REGION};

use crate::remote::Advice;

/// Requested page size of a [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    Small,
    Huge,
}

/// Private anonymous memory, aligned to a region; unmapped when dropped.
#[derive(Debug)]
pub struct Memory {
    mapping: NonNull<u8>,
    mapped: usize,
    /// Start of the aligned part.
    base: NonNull<u8>,
    length: u64,
}

// SAFETY: the mapping is owned by this value alone.
unsafe impl Send for Memory {}

impl Memory {
    /// Reserves `length` bytes (a multiple of a region), which children do not inherit. Nothing is
    /// touched.
    ///
    /// # Errors
    /// Out of address space.
    pub fn new(length: u64) -> io::Result<Memory> {
        // One additional region, so that the start can be aligned.
        let mapped = length
            .checked_add(REGION)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = usize::try_from(mapped).map_err(io::Error::other)?;
        // SAFETY: a new private mapping at an address that the kernel chooses.
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
        // SAFETY: our own mapping; failure is ignored.
        unsafe { libc::madvise(mapping, mapped, libc::MADV_DONTFORK) };
        let mapping = NonNull::new(mapping.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let skip = mapping.as_ptr().align_offset(REGION as usize);
        Ok(Memory {
            mapping,
            mapped,
            // SAFETY: the mapping is longer than `length` by a region, and `skip` is less.
            base: unsafe { mapping.add(skip) },
            length,
        })
    }

    /// Like [`Memory::new`], with pages of this size.
    ///
    /// # Errors
    /// Out of address space, or a kernel without huge pages.
    pub fn reserve(length: u64, pages: Pages) -> io::Result<Memory> {
        let memory = Memory::new(length)?;
        memory.choose(pages)?;
        Ok(memory)
    }

    /// Returns the first byte, aligned to a region.
    pub fn base(&self) -> *const u8 {
        self.base.as_ptr()
    }

    /// Sets the page size of later faults.
    ///
    /// # Errors
    /// A kernel without huge pages.
    pub fn choose(&self, pages: Pages) -> io::Result<()> {
        self.advise(
            0,
            self.length,
            match pages {
                Pages::Small => Advice::NoHuge,
                Pages::Huge => Advice::Huge,
            },
        )
    }

    /// Advises a part of the memory.
    ///
    /// # Errors
    /// As madvise(2).
    pub fn advise(&self, offset: u64, length: u64, advice: Advice) -> io::Result<()> {
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
    pub fn touch(&self, offset: u64) {
        assert!(offset < self.length);
        // SAFETY: inside our own writable mapping.
        unsafe { self.base.add(offset as usize).as_ptr().write_volatile(0) };
    }

    /// Touches every 4 KiB page of `from..to`.
    pub fn touch_pages(&self, from: u64, to: u64) {
        (from..to)
            .step_by(PAGE as usize)
            .for_each(|offset| self.touch(offset));
    }

    /// Clears the pages of `from..to` like the kernel, with one instruction per page.
    pub(crate) fn clear_pages(&self, from: u64, to: u64) {
        assert!(from <= to && to <= self.length && from % PAGE == 0 && to % PAGE == 0);
        for offset in (from..to).step_by(PAGE as usize) {
            // SAFETY: the page is ours and writable, and there is no reference to its content.
            unsafe {
                std::arch::asm!(
                    "rep stosb",
                    inout("rdi") self.base.add(offset as usize).as_ptr() => _,
                    inout("rcx") PAGE => _,
                    in("al") 0u8,
                    options(nostack, preserves_flags)
                );
            }
        }
    }

    /// Returns the memory in `from..to` to the kernel; the next touch reads zeros.
    pub fn free(&mut self, from: u64, to: u64) {
        assert!(from <= to && to <= self.length);
        // SAFETY: the range is ours, and there is no reference to its content.
        unsafe {
            let start = self.base.add(from as usize).as_ptr().cast();
            libc::madvise(start, (to - from) as usize, libc::MADV_DONTNEED);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: our own mapping with its original bounds; no reference to it remains.
        unsafe { libc::munmap(self.mapping.as_ptr().cast(), self.mapped) };
    }
}
