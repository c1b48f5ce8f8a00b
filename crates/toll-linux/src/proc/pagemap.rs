// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/PID/pagemap`: the pages of a process that are in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use toll_model::PAGE;

use crate::Root;

/// Bit of an entry: the page is present.
const PRESENT: u64 = 1 << 63;

/// The open pagemap of a process.
#[derive(Debug)]
pub struct Pagemap(File);

impl Pagemap {
    /// # Errors
    /// No such process, or not permitted.
    pub fn open(root: &Root, pid: u32) -> io::Result<Pagemap> {
        File::open(root.path(format!("/proc/{pid}/pagemap"))).map(Pagemap)
    }

    /// Whether the address space is gone: the process has ended, or has executed another program.
    pub fn is_gone(&self) -> bool {
        let mut entry = [0; 8];
        !matches!(self.0.read_at(&mut entry, 0), Ok(8))
    }

    /// Returns the byte ranges of present pages in `start..end` (multiples of 4096), merged.
    ///
    /// # Errors
    /// The process ended.
    pub fn present(&self, start: u64, end: u64) -> io::Result<Vec<(u64, u64)>> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let mut entries = [0; 1 << 15];
        let mut page = start / PAGE;
        while page < end / PAGE {
            let wanted = (end / PAGE - page).min(entries.len() as u64 / 8) as usize * 8;
            let got = self.0.read_at(&mut entries[..wanted], page * 8)?;
            if got < 8 {
                break;
            }
            for entry in entries[..got].chunks_exact(8) {
                let word = u64::from_ne_bytes(entry.try_into().expect("8 bytes"));
                if word & PRESENT != 0 {
                    extend(&mut runs, page * PAGE);
                }
                page += 1;
            }
        }
        Ok(runs)
    }
}

/// Adds the page at `address`, which is after all earlier ones.
fn extend(runs: &mut Vec<(u64, u64)>, address: u64) {
    match runs.last_mut() {
        Some(last) if last.1 == address => last.1 += PAGE,
        _ => runs.push((address, address + PAGE)),
    }
}
