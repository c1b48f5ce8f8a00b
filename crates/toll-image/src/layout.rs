// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sizes and places, and the payloads of words that have several fields.

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Words of a page, and so entries of a table.
pub const ENTRIES: u64 = 512;
/// Bytes of a cache line: what is flushed at once.
pub const LINE: u64 = 64;

/// The highest level of a root: 512^4 pages, 256 TiB.
pub const TOP_LEVEL: u8 = 4;
/// The largest block that an entry maps: 1 GiB.
pub const LEAF_LEVEL: u8 = 2;
/// The largest size of a file.
pub const MOST_BYTES: u64 = (1 << 48) - PAGE;

pub const PAGE_BITS: u32 = 40;
const PAGE_MASK: u64 = (1 << PAGE_BITS) - 1;

/// The smallest range: two superblocks, a page of inodes, a page of names, and some data.
pub const LEAST_PAGES: u64 = 16;

/// Places of the root words in the range.
pub const INODES: u64 = 256;
pub const NAMES: u64 = 264;

/// Bytes of a slot of an inode, and the places of its words.
pub mod inode {
    pub const SLOT: u64 = 128;
    pub const MODE: u64 = 0;
    pub const UID: u64 = 8;
    pub const GID: u64 = 16;
    pub const SIZE: u64 = 24;
    pub const ROOT: u64 = 32;
    pub const XATTR: u64 = 40;
    pub const MTIME: u64 = 48;
    pub const CTIME: u64 = 56;
    pub const RDEV: u64 = 64;
    pub const GENERATION: u64 = 72;
    /// The end of the words.
    pub const END: u64 = 80;
    /// The root directory.
    pub const FIRST: u64 = 1;
    pub const PER_PAGE: u64 = super::PAGE / SLOT;
}

/// Bytes of a slot of a name, and the places of its words and of its text.
pub mod name {
    pub const SLOT: u64 = 512;
    pub const INODE: u64 = 0;
    pub const PARENT: u64 = 8;
    pub const FROM: u64 = 16;
    pub const OTHER: u64 = 24;
    pub const LENGTH: u64 = 32;
    pub const TEXT: u64 = 64;
    pub const LONGEST: usize = 255;
    pub const PER_PAGE: u64 = super::PAGE / SLOT;
}

/// Types of inodes, as in `st_mode`.
pub mod kind {
    pub const MASK: u16 = 0o170_000;
    pub const FIFO: u16 = 0o010_000;
    pub const CHARACTER: u16 = 0o020_000;
    pub const DIRECTORY: u16 = 0o040_000;
    pub const BLOCK: u16 = 0o060_000;
    pub const FILE: u16 = 0o100_000;
    pub const LINK: u16 = 0o120_000;
    pub const SOCKET: u16 = 0o140_000;
}

/// Seals, with the values of fcntl(2).
pub mod seal {
    pub const SEAL: u8 = 1;
    pub const SHRINK: u8 = 2;
    pub const GROW: u8 = 4;
    pub const WRITE: u8 = 8;
    pub const ALL: u8 = 15;
}

/// Pages that a node of a level covers.
pub const fn pages_of(level: u8) -> u64 {
    1 << (9 * level as u32)
}

/// The entry of a table of a level that leads to a page of the tree.
pub const fn slot_of(index: u64, level: u8) -> u64 {
    (index >> (9 * (level as u32 - 1))) % ENTRIES
}

/// The root word of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Root {
    /// Page of the table or block; 0 if the tree is empty.
    pub page: u64,
    pub level: u8,
    pub leaf: bool,
    pub seals: u8,
}

impl Root {
    pub fn pack(self) -> u64 {
        self.page
            | u64::from(self.level) << 40
            | u64::from(self.leaf) << 43
            | u64::from(self.seals) << 44
    }

    pub fn unpack(payload: u64) -> Root {
        Root {
            page: payload & PAGE_MASK,
            level: (payload >> 40 & 7) as u8,
            leaf: payload >> 43 & 1 == 1,
            seals: (payload >> 44) as u8 & seal::ALL,
        }
    }

    pub fn is_sealed(self) -> bool {
        self.seals & seal::WRITE != 0
    }
}

/// An entry of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub page: u64,
    pub leaf: bool,
}

impl Entry {
    pub fn pack(self) -> u64 {
        self.page | u64::from(self.leaf) << 40
    }

    /// `None` if a reserved bit is set.
    pub fn unpack(payload: u64) -> Option<Entry> {
        (payload >> 41 == 0).then_some(Entry {
            page: payload & PAGE_MASK,
            leaf: payload >> 40 & 1 == 1,
        })
    }
}

/// The inode word of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub inode: u64,
    /// The slot in the word FROM holds the inode in the word OTHER, whatever its own word has.
    pub pending: bool,
}

impl Target {
    pub fn pack(self) -> u64 {
        self.inode | u64::from(self.pending) << 47
    }

    /// `None` if a reserved bit is set.
    pub fn unpack(payload: u64) -> Option<Target> {
        (payload >> 40 & 0x7f == 0).then_some(Target {
            inode: payload & PAGE_MASK,
            pending: payload >> 47 == 1,
        })
    }
}

/// Seconds before 1970 that a time can have.
const TIME_BASE: i64 = 1 << 31;
/// Steps of a second: 100 microseconds each.
pub const TIME_STEPS: u64 = 10_000;

/// A point in time, in seconds since 1970 and steps of 100 microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time {
    pub seconds: i64,
    pub steps: u64,
}

impl Time {
    /// Times out of range become the nearest one in range.
    pub fn pack(self) -> u64 {
        let seconds = self
            .seconds
            .saturating_add(TIME_BASE)
            .clamp(0, (1 << 34) - 1);
        (seconds as u64) << 14 | self.steps.min(TIME_STEPS - 1)
    }

    /// `None` if the steps are a second or more.
    pub fn unpack(payload: u64) -> Option<Time> {
        let steps = payload & ((1 << 14) - 1);
        (steps < TIME_STEPS).then_some(Time {
            seconds: (payload >> 14) as i64 - TIME_BASE,
            steps,
        })
    }
}

#[cfg(test)]
mod tests;
