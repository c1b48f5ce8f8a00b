// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies a file into a morsel past the page cache: the disk transfers into the morsel's own pages.

mod window;

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use blake3::{Hash, Hasher};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::{Errno, pread};
use toll_model::PAGE;

use self::window::{Window, collapse, populate};
use super::{Backing, Kind, MorselError, at};

/// Bytes mapped at a time if a mapping has page tables of its own, and bytes reserved at a time.
const WINDOW: u64 = 64 << 20;
/// Bytes read at a time: the copy can be interrupted between two reads.
const CHUNK: usize = 4 << 20;

/// Parameters of a copy.
pub struct Copy<'a> {
    pub source: &'a File,
    /// Source path, for messages.
    pub source_path: &'a Path,
    pub morsel: &'a File,
    /// Morsel path, for messages.
    pub directory: &'a Path,
    /// Bytes of the source; the morsel has room for them, rounded up to whole pages.
    pub size: u64,
    /// File system of the morsel.
    pub backing: &'a Backing,
    /// Whether this many more bytes may be taken.
    pub has_room: &'a dyn Fn(u64) -> bool,
}

/// Result of a copy.
pub struct Copied {
    /// Whether all reads bypassed the page cache.
    pub direct: bool,
    /// Digest of all bytes read.
    pub digest: Hash,
}

impl Copy<'_> {
    /// Performs the copy. `progress` receives the number of bytes copied; the copy ends if it
    /// returns false.
    pub fn run(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Copied, MorselError> {
        let mut from_disk = Reading {
            direct: open_direct(self.source),
            hasher: Hasher::new(),
        };
        let mut start = 0;
        while start < self.size {
            let length = self.stretch().min(self.size - start);
            let mapped = length.next_multiple_of(self.page()) as usize;
            let mut window =
                Window::map(self.morsel, start, mapped).map_err(|error| self.failed(error))?;
            if self.asks_for_huge() {
                window.advise_huge();
            }
            for from in (0..length).step_by(WINDOW as usize) {
                let part = WINDOW.min(length - from);
                let bytes = &mut window.bytes()[from as usize..];
                self.reserve(bytes, start + from, part, progress)?;
                self.read(bytes, start + from, part as usize, &mut from_disk, progress)?;
                if self.asks_for_huge() {
                    collapse(&mut bytes[..part.next_multiple_of(PAGE) as usize]);
                }
            }
            start += length;
        }
        progress(self.size);
        Ok(Copied {
            direct: from_disk.direct.is_some(),
            digest: from_disk.hasher.finalize(),
        })
    }

    /// Reads the source again and returns the digest of its current content.
    pub fn digest_again(&self, progress: &mut dyn FnMut(u64) -> bool) -> Result<Hash, MorselError> {
        let mut from_disk = Reading {
            direct: open_direct(self.source),
            hasher: Hasher::new(),
        };
        let mut buffer = Window::anonymous(CHUNK).map_err(at(self.source_path))?;
        for start in (0..self.size).step_by(CHUNK) {
            let length = (CHUNK as u64).min(self.size - start) as usize;
            // All bytes are copied.
            let mut progress = |_| progress(self.size);
            self.read(buffer.bytes(), start, length, &mut from_disk, &mut progress)?;
        }
        Ok(from_disk.hasher.finalize())
    }

    fn page(&self) -> u64 {
        self.backing.smallest_page()
    }

    /// Returns the bytes mapped at a time: a multiple of the page and of [`WINDOW`]; everything if
    /// a mapping has no cost.
    fn stretch(&self) -> u64 {
        match self.backing.kind {
            Kind::Morselfs => u64::MAX,
            Kind::Tmpfs | Kind::Hugetlbfs => WINDOW.max(self.page()),
        }
    }

    /// Whether the kernel should compact for huge pages: tmpfs otherwise uses only free ones.
    fn asks_for_huge(&self) -> bool {
        self.backing.kind == Kind::Tmpfs && self.backing.page > PAGE
    }

    /// Allocates the pages now: a full file system is an error here, not a SIGBUS later.
    fn reserve(
        &self,
        window: &mut [u8],
        start: u64,
        length: u64,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), MorselError> {
        if !(self.has_room)(length) {
            return Err(self.full("other programs need what memory is left"));
        }
        loop {
            if !progress(start) {
                return Err(MorselError::Interrupted);
            }
            let populated = match self.asks_for_huge() {
                true => populate(&mut window[..length.next_multiple_of(PAGE) as usize]),
                false => Err(Errno::INVAL),
            };
            let reserved = match populated {
                // Not supported before Linux 5.14.
                Err(Errno::INVAL) => self.allocate(start, length),
                Err(Errno::FAULT) => Err(Errno::NOSPC),
                result => result,
            };
            match reserved {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn allocate(&self, start: u64, length: u64) -> Result<(), Errno> {
        let length = match self.page() {
            // Truncate to the length of the source.
            PAGE => length,
            page => length
                .next_multiple_of(page)
                .min(self.size.next_multiple_of(page) - start),
        };
        fallocate(self.morsel, FallocateFlags::empty(), start, length)
    }

    /// Fills a window that starts at `start` of the file with `length` bytes.
    fn read(
        &self,
        window: &mut [u8],
        start: u64,
        length: usize,
        from_disk: &mut Reading,
        progress: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), MorselError> {
        // Disks write whole blocks: the last one extends beyond the end of the file, but not beyond
        // its page.
        let room = length.next_multiple_of(PAGE as usize);
        let Reading { direct, hasher } = from_disk;
        let mut done = 0;
        while done < length {
            let offset = start + done as u64;
            if !progress(offset) {
                return Err(MorselError::Interrupted);
            }
            let chunk = &mut window[done..room.min(done + CHUNK)];
            match pread(direct.as_ref().unwrap_or(self.source), &mut *chunk, offset) {
                Ok(0) => return Err(MorselError::Changing(self.source_path.to_owned())),
                Ok(got) => {
                    // Exclude data that was appended meanwhile.
                    hasher.update(&chunk[..got.min(length - done)]);
                    done += got;
                }
                Err(Errno::INTR) => {}
                // The file system opens files with O_DIRECT, but does not support such reads
                // (here).
                Err(Errno::INVAL | Errno::OPNOTSUPP) if direct.is_some() => *direct = None,
                // The kernel found no free page.
                Err(Errno::FAULT) => return Err(self.failed(Errno::NOSPC)),
                Err(error) => return Err(at(self.source_path)(error)),
            }
            if direct.is_none() {
                // The source is no longer needed in the page cache.
                let _ = fadvise(
                    self.source,
                    offset,
                    std::num::NonZeroU64::new(CHUNK as u64),
                    Advice::DontNeed,
                );
            }
        }
        window[length..room].fill(0);
        Ok(())
    }

    /// Translates an error of the morsel.
    fn failed(&self, error: Errno) -> MorselError {
        match error {
            Errno::NOSPC | Errno::NOMEM | Errno::DQUOT => {
                self.full("its file system, or memory, is full")
            }
            error => at(self.directory)(error),
        }
    }

    fn full(&self, why: &str) -> MorselError {
        MorselError::Full {
            path: self.directory.to_owned(),
            needed: self.size,
            why: why.to_owned(),
        }
    }
}

/// A source that is read sequentially.
struct Reading {
    /// The same file opened with O_DIRECT, as long as that works.
    direct: Option<File>,
    /// Digest of the data so far.
    hasher: Hasher,
}

/// Opens the file again with O_DIRECT; `None` if its file system does not support it.
fn open_direct(file: &File) -> Option<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .ok()
}

#[cfg(test)]
mod tests;
