// SPDX-License-Identifier: MIT OR Apache-2.0
//! Huge pages of files in memory that outlive the process: a file on tmpfs keeps them, and the next
//! process that maps it would find them. They are split again once the process has ended.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::ptr::null_mut;

use toll_model::{PAGE, REGION};

use super::Backing;
use super::forks::mapping_at;
use crate::Root;
use crate::proc::{Kind, Mapping};
use crate::remote::{Advice, drain};

/// Attempts to split a page; a split fails while another CPU handles the page.
const TRIES: usize = 5;

/// Regions of files that were made huge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restore(Vec<Part>);

/// A region of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    path: PathBuf,
    inode: u64,
    offset: u64,
}

impl Restore {
    /// Notes a region that was collapsed, if it is part of a file that still has a name.
    pub(super) fn note(&mut self, region: u64, maps: &[Mapping]) {
        let Some(mapping) = mapping_at(maps, region).filter(|it| it.shared) else {
            return;
        };
        match mapping.kind() {
            Kind::File(path) if !path.ends_with(" (deleted)") => self.0.push(Part {
                path: path.into(),
                inode: mapping.inode,
                offset: region - mapping.start + mapping.offset,
            }),
            _ => {}
        }
    }

    /// Adds the regions of another process.
    pub fn add(&mut self, other: &Restore) {
        self.0.extend_from_slice(&other.0);
    }

    /// Splits the regions. Returns how many could not be split: another process maps them.
    pub fn split(&mut self) -> usize {
        if self.0.is_empty() {
            return 0;
        }
        drain();
        let parts = std::mem::take(&mut self.0);
        parts.iter().filter(|part| part.split().is_err()).count()
    }
}

impl Part {
    /// A file that is gone needs nothing.
    fn split(&self) -> io::Result<()> {
        let Ok(file) = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
            .open(&self.path)
        else {
            return Ok(());
        };
        let state = file.metadata()?;
        if state.ino() != self.inode || state.len() < self.offset + REGION {
            return Ok(());
        }
        split_at(&file, self.offset)
    }
}

/// Splits the huge page at this offset through a mapping of our own. Its address and offset agree,
/// so that it shows whether the page is huge.
fn split_at(file: &File, offset: u64) -> io::Result<()> {
    let room = Room::reserve()?;
    let page = room.map(file, offset)?;
    for _ in 0..TRIES {
        // SAFETY: the mapping is our own and only read, by the kernel.
        unsafe {
            check(libc::madvise(page, PAGE as usize, libc::MADV_POPULATE_READ))?;
            check(libc::madvise(page, PAGE as usize, Advice::Cold.number()))?;
        }
        if !room.is_huge() {
            return Ok(());
        }
        drain();
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A reserved range with one whole region.
struct Room(*mut libc::c_void);

impl Room {
    const LENGTH: usize = 2 * REGION as usize;

    fn reserve() -> io::Result<Room> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping of our own.
        let at = unsafe { libc::mmap(null_mut(), Room::LENGTH, libc::PROT_NONE, flags, -1, 0) };
        match at {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            at => Ok(Room(at)),
        }
    }

    fn region(&self) -> u64 {
        (self.0 as u64).next_multiple_of(REGION)
    }

    /// Maps a region of a file for reading. Returns its address.
    fn map(&self, file: &File, offset: u64) -> io::Result<*mut libc::c_void> {
        let flags = libc::MAP_SHARED | libc::MAP_FIXED;
        let (at, length) = (self.region() as *mut libc::c_void, REGION as usize);
        let (fd, offset) = (file.as_raw_fd(), offset as libc::off_t);
        // SAFETY: the range is part of our own reservation.
        match unsafe { libc::mmap(at, length, libc::PROT_READ, flags, fd, offset) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            at => Ok(at),
        }
    }

    /// Whether a huge page is mapped; before Linux 6.7, where that is unknown, not.
    fn is_huge(&self) -> bool {
        let range = (self.region(), self.region() + REGION);
        let own = std::process::id();
        Backing::of(&Root::system(), own, &[range]).is_ok_and(|found| !found.huge.is_empty())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: our own reservation; nothing refers to it.
        unsafe { libc::munmap(self.0, Room::LENGTH) };
    }
}

#[cfg(test)]
mod tests;
