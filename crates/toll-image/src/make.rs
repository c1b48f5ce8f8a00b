// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes an empty range.

use std::io;

use crate::layout::{INODES, NAMES, PAGE, Root, Time, inode, kind};
use crate::medium::Medium;
use crate::superblock::Superblock;

/// The page of the first inodes.
const FIRST_INODES: u64 = 2;

/// What an empty range has.
#[derive(Debug, Clone, Copy)]
pub struct Template {
    pub uuid: [u8; 16],
    pub pages: u64,
    pub now: Time,
    /// Permission bits of the root directory.
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
}

/// Writes an empty range. If it is interrupted, the range is not recognised.
pub fn make(medium: &mut impl Medium, template: &Template) -> io::Result<()> {
    for page in 0..=FIRST_INODES {
        medium.store(page * PAGE, &[0; PAGE as usize])?;
    }
    medium.flush(0..(FIRST_INODES + 1) * PAGE)?;
    medium.fence()?;
    root_directory(medium, template)?;
    let root = Root {
        page: FIRST_INODES,
        leaf: true,
        ..Root::default()
    };
    medium.store_word(INODES, root.pack())?;
    medium.store_word(NAMES, 0)?;
    medium.flush(0..(FIRST_INODES + 1) * PAGE)?;
    medium.fence()?;
    superblocks(medium, template)
}

fn root_directory(medium: &mut impl Medium, template: &Template) -> io::Result<()> {
    let at = FIRST_INODES * PAGE + inode::FIRST * inode::SLOT;
    let mode = u64::from(kind::DIRECTORY | template.mode & 0o7777);
    medium.store_word(at + inode::MODE, mode)?;
    medium.store_word(at + inode::UID, template.uid.into())?;
    medium.store_word(at + inode::GID, template.gid.into())?;
    medium.store_word(at + inode::MTIME, template.now.pack())?;
    medium.store_word(at + inode::CTIME, template.now.pack())
}

fn superblocks(medium: &mut impl Medium, template: &Template) -> io::Result<()> {
    let superblock = Superblock {
        compatible: 0,
        incompatible: 0,
        uuid: template.uuid,
        pages: template.pages,
    };
    for page in [1, 0] {
        medium.write(page * PAGE, &superblock.encode())?;
        medium.fence()?;
    }
    Ok(())
}
