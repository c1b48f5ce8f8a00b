// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/PID/smaps`, read line by line: for 60,000 mappings it is 40 MB of text.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use toll_model::PAGE;

use super::damaged;
use super::maps::Mapping;
use crate::Root;

/// A mapping and its backing. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Smap {
    pub mapping: Mapping,
    pub rss: u64,
    pub referenced: u64,
    pub anonymous: u64,
    /// Anonymous memory mapped by huge pages.
    pub anon_huge: u64,
    /// Shared and file memory mapped by huge pages.
    pub file_huge: u64,
    pub hugetlb: u64,
    pub swap: u64,
    /// Given back by MADV_FREE, and not yet reclaimed.
    pub lazy_free: u64,
    /// Size of a page; more than 4096 for hugetlb.
    pub page: u64,
    /// Whether the kernel would use transparent huge pages; missing before Linux 5.0.
    pub eligible: Option<bool>,
    /// MADV_HUGEPAGE is set.
    pub advised_huge: bool,
    /// MADV_NOHUGEPAGE is set.
    pub advised_never: bool,
    /// Locked by mlock: its huge pages cannot be split by advice.
    pub locked: bool,
    /// userfaultfd handles its faults.
    pub userfaultfd: bool,
    /// It maps a device, or pages without memory management.
    pub device: bool,
}

impl Smap {
    fn new(mapping: Mapping) -> Smap {
        Smap {
            mapping,
            rss: 0,
            referenced: 0,
            anonymous: 0,
            anon_huge: 0,
            file_huge: 0,
            hugetlb: 0,
            swap: 0,
            lazy_free: 0,
            page: PAGE,
            eligible: None,
            advised_huge: false,
            advised_never: false,
            locked: false,
            userfaultfd: false,
            device: false,
        }
    }

    /// Returns the bytes mapped by huge pages of any kind.
    pub fn huge(&self) -> u64 {
        self.anon_huge + self.file_huge + self.hugetlb
    }

    /// Parses a line other than a mapping's first. Unknown fields are ignored.
    fn field(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(':') else {
            return;
        };
        let place = match key {
            "Rss" => &mut self.rss,
            "Referenced" => &mut self.referenced,
            "Anonymous" => &mut self.anonymous,
            "AnonHugePages" => &mut self.anon_huge,
            "ShmemPmdMapped" | "FilePmdMapped" => &mut self.file_huge,
            "Private_Hugetlb" | "Shared_Hugetlb" => &mut self.hugetlb,
            "Swap" => &mut self.swap,
            "LazyFree" => &mut self.lazy_free,
            "KernelPageSize" => {
                self.page = bytes(value).max(PAGE);
                return;
            }
            "THPeligible" => {
                self.eligible = Some(value.trim() != "0");
                return;
            }
            "VmFlags" => return self.flags(value),
            _ => return,
        };
        *place += bytes(value);
    }

    /// Parses the flags: proc_pid_smaps(5).
    fn flags(&mut self, flags: &str) {
        for flag in flags.split(' ') {
            match flag {
                "hg" => self.advised_huge = true,
                "nh" => self.advised_never = true,
                "um" | "uw" | "ui" => self.userfaultfd = true,
                "io" | "pf" => self.device = true,
                "lo" => self.locked = true,
                _ => {}
            }
        }
    }
}

/// The bytes of a value in kB; 0 if it is not one.
fn bytes(value: &str) -> u64 {
    let kilobytes = value.trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap_or(0) << 10
}

/// Calls `each` for every mapping, by address, holding one at a time.
///
/// # Errors
/// No such process, no permission, or text that is not smaps.
pub fn smaps_each(root: &Root, pid: u32, mut each: impl FnMut(Smap)) -> io::Result<()> {
    let path = format!("/proc/{pid}/smaps");
    let mut reader = BufReader::with_capacity(1 << 18, File::open(root.path(&path))?);
    let mut bytes = Vec::new();
    let mut current: Option<Smap> = None;
    while reader.read_until(b'\n', &mut bytes)? != 0 {
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end();
        // Fields begin with a capital letter, addresses with a lower-case hexadecimal digit.
        if line.starts_with(|c: char| c.is_ascii_uppercase()) {
            let smap = current.as_mut().ok_or_else(|| damaged(&path, line))?;
            smap.field(line);
        } else {
            let mapping = Mapping::parse(line).ok_or_else(|| damaged(&path, line))?;
            if let Some(done) = current.replace(Smap::new(mapping)) {
                each(done);
            }
        }
        bytes.clear();
    }
    current.into_iter().for_each(each);
    Ok(())
}

/// Returns all mappings of a process with their backing, by address.
///
/// # Errors
/// As [`smaps_each`].
pub fn smaps(root: &Root, pid: u32) -> io::Result<Vec<Smap>> {
    let mut all = Vec::new();
    smaps_each(root, pid, |smap| all.push(smap))?;
    Ok(all)
}
