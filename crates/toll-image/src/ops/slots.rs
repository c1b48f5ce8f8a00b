// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slots of inodes and names, and their pages.

use std::collections::BTreeMap;

use super::{Fs, OpError, Result};
use crate::fault::Fault;
use crate::layout::{INODES, NAMES, PAGE, Root, inode, name};
use crate::medium::Medium;
use crate::word::crc32c;

/// A new inode.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct New {
    pub mode: u16,
    pub rdev: u32,
    pub size: u64,
    pub root: Root,
}

/// The other side of a rename.
#[derive(Debug, Clone, Copy)]
pub(super) struct From {
    pub slot: u64,
    pub other: u64,
}

impl<M: Medium> Fs<M> {
    pub(super) fn free_inode(&mut self) -> Result<(u64, u64)> {
        let is_free = |slot: u64| slot != 0 && !self.inodes.contains_key(&slot);
        if let Some(slot) = free_slot(&self.inode_pages, inode::SLOT, is_free) {
            return Ok(slot);
        }
        let index = free_index(self.inode_pages.keys());
        let page = self.new_page(INODES, index)?;
        self.inode_pages.insert(index, page);
        self.free_inode()
    }

    pub(super) fn free_name(&mut self) -> Result<(u64, u64)> {
        let is_free = |slot: u64| !self.names.contains_key(&slot);
        if let Some(slot) = free_slot(&self.name_pages, name::SLOT, is_free) {
            return Ok(slot);
        }
        let index = free_index(self.name_pages.keys());
        let page = self.new_page(NAMES, index)?;
        self.name_pages.insert(index, page);
        self.free_name()
    }

    /// The place of a slot of a name.
    pub(super) fn name_at(&self, slot: u64) -> Result<u64> {
        let page = self
            .name_pages
            .get(&(slot / name::PER_PAGE))
            .ok_or(OpError::NoEntry)?;
        Ok(page * PAGE + slot % name::PER_PAGE * name::SLOT)
    }

    /// Adds an empty page to a tree of slots.
    fn new_page(&mut self, root: u64, index: u64) -> Result<u64> {
        let page = self.take(1)?;
        self.zero(page, 1)?;
        self.place(root, index, 0, page)?;
        Ok(page)
    }

    /// Stores an inode that has no name. A fence follows.
    pub(super) fn new_inode(&mut self, new: New) -> Result<u64> {
        let (number, at) = self.free_inode()?;
        let generation = (self.get(at + inode::GENERATION)? + 1) & u64::from(u32::MAX);
        let words = [
            (inode::UID, 0),
            (inode::GID, 0),
            (inode::SIZE, new.size),
            (inode::ROOT, new.root.pack()),
            (inode::XATTR, 0),
            (inode::MTIME, self.now.pack()),
            (inode::CTIME, self.now.pack()),
            (inode::RDEV, new.rdev.into()),
            (inode::GENERATION, generation),
        ];
        for (field, payload) in words {
            self.medium.store_word(at + field, payload)?;
        }
        if !self.has(Fault::ModeFirst) {
            self.medium.flush(at..at + inode::SLOT)?;
            self.fence()?;
        }
        self.set(at + inode::MODE, new.mode.into())?;
        self.inodes.insert(number, at);
        self.links.insert(number, 0);
        Ok(number)
    }

    /// Stores a name that leads nowhere yet, and returns its slot. A fence follows.
    pub(super) fn new_name(&mut self, parent: u64, text: &[u8], from: Option<From>) -> Result<u64> {
        let (slot, at) = self.free_name()?;
        let length = text.len() as u64 | u64::from(crc32c(text)) << 8;
        self.medium.store_word(at + name::PARENT, parent)?;
        if let Some(from) = from {
            self.store_from(at, from)?;
        }
        self.medium.store_word(at + name::LENGTH, length)?;
        self.medium.store(at + name::TEXT, text)?;
        if !self.has(Fault::NameNotFlushed) {
            self.medium.flush(at..at + name::SLOT)?;
        }
        Ok(slot)
    }

    /// Stores the fields of a rename.
    pub(super) fn store_from(&mut self, at: u64, from: From) -> Result<()> {
        self.medium.store_word(at + name::FROM, from.slot + 1)?;
        Ok(self.medium.store_word(at + name::OTHER, from.other)?)
    }
}

/// The first free slot of these pages, and its place.
fn free_slot(
    pages: &BTreeMap<u64, u64>,
    bytes: u64,
    is_free: impl Fn(u64) -> bool,
) -> Option<(u64, u64)> {
    let per_page = PAGE / bytes;
    let mut slots = pages.iter().flat_map(|(index, page)| {
        (0..per_page).map(move |n| (index * per_page + n, page * PAGE + n * bytes))
    });
    slots.find(|(slot, _)| is_free(*slot))
}

/// The first index that has no page.
fn free_index<'a>(used: impl Iterator<Item = &'a u64>) -> u64 {
    let mut free = 0;
    for index in used {
        if *index != free {
            break;
        }
        free += 1;
    }
    free
}
