// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sizes of the pages behind 4 KiB entries: huge pages of smaller sizes, and huge pages of 2 MiB
//! that were split in the page table, because a part of them was unmapped, protected or given back.
//! Needs the page frame numbers, which only CAP_SYS_ADMIN sees.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use toll_model::random::Random;
use toll_model::{PAGE, REGION};

use crate::Root;

/// Entries of a page table; also the pages of the largest folio that is looked for.
const ENTRIES: usize = (REGION / PAGE) as usize;

/// Bits of an entry of pagemap: Documentation/admin-guide/mm/pagemap.rst.
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;
/// Bits of an entry of kpageflags: include/uapi/linux/kernel-page-flags.h.
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;

/// Pages of regions by the size of the folio that holds them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folios {
    /// Regions that were looked at, of those that were given.
    pub read: usize,
    pub regions: usize,
    /// Bytes of present pages, by the order of the folio.
    pub bytes: [u64; 10],
    /// Bytes of folios of 2 MiB that are not mapped here any more, and still in memory.
    pub retained: u64,
}

/// Looks at the pages of regions with 4 KiB entries, chosen at random, for at most `time`.
///
/// # Errors
/// The files cannot be read, or do not show frame numbers.
pub fn folios(root: &Root, pid: u32, mut regions: Vec<u64>, time: Duration) -> io::Result<Folios> {
    let begun = Instant::now();
    let mut reader = Reader::open(root, pid)?;
    let mut random = Random::new(1);
    let mut found = Folios {
        regions: regions.len(),
        ..Folios::default()
    };
    for at in 0..regions.len() {
        let other = at + random.below(regions.len() - at);
        regions.swap(at, other);
        reader.region(regions[at], &mut found)?;
        found.read += 1;
        if begun.elapsed() > time {
            break;
        }
    }
    Ok(found)
}

struct Reader {
    pagemap: File,
    flags: File,
    /// The orders of the pages of one aligned block of frames.
    block: Option<(u64, [u8; ENTRIES])>,
}

impl Reader {
    fn open(root: &Root, pid: u32) -> io::Result<Reader> {
        Ok(Reader {
            pagemap: File::open(root.path(format!("/proc/{pid}/pagemap")))?,
            flags: File::open(root.path("/proc/kpageflags"))?,
            block: None,
        })
    }

    fn region(&mut self, region: u64, found: &mut Folios) -> io::Result<()> {
        let entries = words(&self.pagemap, region / PAGE)?;
        let present = |entry: &&u64| **entry & PRESENT != 0;
        let mut whole = 0;
        for entry in entries.iter().filter(present) {
            let frame = entry & FRAME;
            if frame == 0 {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            let order = self.order(frame)?;
            found.bytes[usize::from(order)] += PAGE;
            whole += u64::from(usize::from(order) == found.bytes.len() - 1);
        }
        // A folio of 2 MiB lies in one region, unless it was moved.
        if whole > 0 {
            found.retained += REGION - whole * PAGE;
        }
        Ok(())
    }

    /// The order of the folio that contains a frame.
    fn order(&mut self, frame: u64) -> io::Result<u8> {
        let block = frame / ENTRIES as u64;
        let orders = match self.block {
            Some((known, orders)) if known == block => orders,
            _ => {
                let orders = orders(&words(&self.flags, block * ENTRIES as u64)?);
                self.block = Some((block, orders));
                orders
            }
        };
        Ok(orders[(frame % ENTRIES as u64) as usize])
    }
}

/// The orders of the folios in an aligned block; folios are aligned to their size.
fn orders(flags: &[u64; ENTRIES]) -> [u8; ENTRIES] {
    let mut orders = [0; ENTRIES];
    let mut at = 0;
    while at < ENTRIES {
        let tails = flags[at + 1..].iter().take_while(|it| **it & TAIL != 0);
        let pages = match flags[at] & HEAD {
            0 => 1,
            _ => 1 + tails.count(),
        };
        orders[at..at + pages].fill(pages.ilog2() as u8);
        at += pages;
    }
    orders
}

/// Reads a block of entries, the first with this number.
fn words(file: &File, first: u64) -> io::Result<[u64; ENTRIES]> {
    let mut bytes = [0; ENTRIES * 8];
    file.read_exact_at(&mut bytes, first * 8)?;
    let mut words = [0; ENTRIES];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests;
