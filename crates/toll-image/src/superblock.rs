// SPDX-License-Identifier: MIT OR Apache-2.0
//! The superblock: what never changes about a range.

use std::io;

use thiserror::Error;

use crate::layout::{LEAST_PAGES, PAGE, PAGE_BITS};
use crate::medium::Source;
use crate::word::crc32c;

pub const MAGIC: [u8; 8] = *b"MORSELFS";
pub const VERSION: u32 = 1;
/// The logarithm of the page size.
const PAGE_SHIFT: u32 = 12;
/// Bytes that the checksum covers, and after which it is stored.
const SUMMED: usize = 252;

/// The immutable part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Features that a reader may ignore.
    pub compatible: u64,
    /// Features without which nothing can be read.
    pub incompatible: u64,
    pub uuid: [u8; 16],
    pub pages: u64,
}

/// Why a range is not read at all.
#[derive(Debug, Error)]
pub enum Refusal {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("has {0} pages of 4 KiB; the least is {LEAST_PAGES}")]
    TooSmall(u64),
    #[error("holds no persistent morsels: the signature at its begin is missing")]
    Foreign,
    #[error("has version {0} of the format; this program knows version {VERSION}")]
    Newer(u32),
    #[error("has features that this program does not know: {0:#x}")]
    Features(u64),
    #[error("is cut off: {present} of {recorded} pages are there")]
    Truncated { recorded: u64, present: u64 },
    #[error("both copies of its superblock are damaged")]
    Damaged,
}

/// A superblock as found: the valid copy, and which copies are damaged.
#[derive(Debug)]
pub struct Found {
    pub superblock: Superblock,
    /// Numbers of the pages that have a damaged copy.
    pub damaged: Vec<u64>,
}

impl Superblock {
    /// The first 256 bytes of pages 0 and 1.
    pub fn encode(&self) -> [u8; 256] {
        let mut bytes = [0; 256];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&PAGE_SHIFT.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.compatible.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.incompatible.to_le_bytes());
        bytes[32..48].copy_from_slice(&self.uuid);
        bytes[48..56].copy_from_slice(&self.pages.to_le_bytes());
        let sum = crc32c(&bytes[..SUMMED]);
        bytes[SUMMED..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads the copy of page 0, or of page 1 if that one is damaged.
    pub fn read(source: &impl Source) -> Result<Found, Refusal> {
        let present = source.pages();
        if present < LEAST_PAGES {
            return Err(Refusal::TooSmall(present));
        }
        let copies = [copy(&source.page(0)?), copy(&source.page(1)?)];
        let damaged = (0..2).filter(|n| !matches!(copies[*n as usize], Copy::Valid(_)));
        let damaged = damaged.collect();
        let superblock = choose(copies)?;
        superblock.check(present)?;
        Ok(Found {
            superblock,
            damaged,
        })
    }

    fn check(&self, present: u64) -> Result<(), Refusal> {
        if self.incompatible != 0 {
            return Err(Refusal::Features(self.incompatible));
        }
        if self.pages < LEAST_PAGES || self.pages > 1 << PAGE_BITS {
            return Err(Refusal::Damaged);
        }
        if self.pages > present {
            let recorded = self.pages;
            return Err(Refusal::Truncated { recorded, present });
        }
        Ok(())
    }
}

/// A copy of the superblock.
enum Copy {
    Foreign,
    Newer(u32),
    Damaged,
    Valid(Superblock),
}

/// The valid copy, or why there is none.
fn choose(copies: [Copy; 2]) -> Result<Superblock, Refusal> {
    match copies {
        [Copy::Valid(superblock), _] | [_, Copy::Valid(superblock)] => Ok(superblock),
        [Copy::Newer(version), _] | [_, Copy::Newer(version)] => Err(Refusal::Newer(version)),
        [Copy::Damaged, _] | [_, Copy::Damaged] => Err(Refusal::Damaged),
        _ => Err(Refusal::Foreign),
    }
}

fn copy(page: &[u8]) -> Copy {
    let number =
        |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    let long = |at| crate::word::number_at(page, at);
    if page.len() != PAGE as usize || page[..8] != MAGIC {
        return Copy::Foreign;
    }
    if number(SUMMED) != crc32c(&page[..SUMMED]) {
        return Copy::Damaged;
    }
    if number(8) != VERSION {
        return Copy::Newer(number(8));
    }
    if number(12) != PAGE_SHIFT {
        return Copy::Damaged;
    }
    Copy::Valid(Superblock {
        compatible: long(16),
        incompatible: long(24),
        uuid: page[32..48].try_into().unwrap_or_default(),
        pages: long(48),
    })
}

/// A UUID in its usual form.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-")
}

#[cfg(test)]
mod tests;
