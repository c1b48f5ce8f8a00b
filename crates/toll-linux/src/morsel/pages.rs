// SPDX-License-Identifier: MIT OR Apache-2.0
//! Page sizes of a morsel, and the number of processes that map it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use toll_model::{PAGE, REGION};

use super::{Kind, Morsel, Store};
use crate::Root;
use crate::proc::processes;

/// Number of processes that map each file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapped {
    /// Processes by device and inode of the mapped file.
    processes: BTreeMap<(u64, u64), u64>,
    /// Whether every process could be read.
    pub complete: bool,
}

impl Mapped {
    /// Reads all processes.
    pub fn read(root: &Root) -> Mapped {
        let mut mapped = Mapped {
            complete: true,
            ..Mapped::default()
        };
        for pid in processes(root) {
            match root.read(format!("/proc/{pid}/maps")) {
                Ok(maps) => mapped.add(&maps),
                // The process ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(_) => mapped.complete = false,
            }
        }
        mapped
    }

    /// Adds a process by its maps.
    fn add(&mut self, maps: &str) {
        let mut files: Vec<(u64, u64)> = maps.lines().filter_map(device_and_inode).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            *self.processes.entry(file).or_default() += 1;
        }
    }

    /// Returns the number of processes that map a file.
    pub fn count(&self, device: u64, inode: u64) -> u64 {
        self.processes
            .get(&(device, inode))
            .copied()
            .unwrap_or_default()
    }
}

/// Returns the fourth and fifth field of a line of `/proc/PID/maps`; `None` for anonymous memory.
fn device_and_inode(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |hex| u32::from_str_radix(hex, 16).ok();
    let device = libc::makedev(number(major)?, number(minor)?);
    let inode = fields.next()?.parse().ok()?;
    (inode != 0).then_some((device, inode))
}

/// Bytes of a morsel by mapped page size. The end of a file may lie in a huge page but be mapped by
/// 4 KiB pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pages {
    pub huge: u64,
    /// Bytes mapped by 4 KiB pages.
    pub small: u64,
}

impl Store {
    /// Returns the page sizes of a morsel; `None` if they cannot be determined: on morselfs, for a
    /// morsel with holes (reading would fill them), and for another user's morsel (reading would
    /// count as a use).
    pub fn pages(&self, morsel: &Morsel) -> Option<Pages> {
        if self.backing.kind == Kind::Hugetlbfs {
            return Some(Pages {
                huge: morsel.allocated,
                small: 0,
            });
        }
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOATIME)
            .open(&morsel.path)
            .ok()?;
        let length = file.metadata().ok()?.size();
        let is_whole = morsel.allocated >= length;
        if self.backing.kind != Kind::Tmpfs || !is_whole || length == 0 {
            return None;
        }
        // SAFETY: a new read-only mapping of pages that exist; each access is within the file.
        let smaps = unsafe {
            let (none, flags) = (ptr::null_mut(), MapFlags::SHARED);
            let start = mmap(none, length as usize, ProtFlags::READ, flags, &file, 0).ok()?;
            for offset in (0..length).step_by(REGION as usize) {
                start.cast::<u8>().add(offset as usize).read_volatile();
            }
            let smaps = std::fs::read_to_string("/proc/self/smaps");
            let _ = munmap(start, length as usize);
            smaps
                .ok()
                .and_then(|smaps| mapped_huge(&smaps, start as u64))
        };
        let huge = smaps?.min(morsel.allocated);
        Some(Pages {
            huge,
            small: morsel.allocated - huge,
        })
    }
}

/// Returns the bytes that the mapping at `start` maps by huge pages of tmpfs.
fn mapped_huge(smaps: &str, start: u64) -> Option<u64> {
    let begins = format!("{start:08x}-");
    let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&begins));
    let kilobytes = lines.find_map(|line| line.strip_prefix("ShmemPmdMapped:"))?;
    let kilobytes: u64 = kilobytes.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Formats for messages: `1.5 GiB mapped by huge pages, 4 KiB by pages of 4 KiB`.
impl std::fmt::Display for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [huge, small, page] = [self.huge, self.small, PAGE].map(toll_model::units::format_size);
        match (self.huge, self.small) {
            (0, _) => write!(f, "{small} mapped by pages of {page}"),
            (_, 0) => write!(f, "{huge} mapped by huge pages"),
            _ => write!(f, "{huge} mapped by huge pages, {small} by pages of {page}"),
        }
    }
}

#[cfg(test)]
mod tests;
