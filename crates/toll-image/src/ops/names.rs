// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations that make and remove names.

use super::slots::New;
use super::{Fs, OpError, Result};
use crate::fault::Fault;
use crate::layout::{PAGE, Root, inode, kind, name};
use crate::medium::Medium;
use crate::survey::{Name, is_name};

impl<M: Medium> Fs<M> {
    /// Creates a file, a directory or a special file, of the type and rights of a mode.
    pub fn create(&mut self, parent: u64, text: &[u8], mode: u16, rdev: u32) -> Result<u64> {
        self.check_new(parent, text)?;
        let new = New {
            mode,
            rdev,
            ..New::default()
        };
        self.make(parent, text, new)
    }

    pub fn symlink(&mut self, parent: u64, text: &[u8], target: &[u8]) -> Result<u64> {
        self.check_new(parent, text)?;
        if target.is_empty() || target.len() >= PAGE as usize || target.contains(&0) {
            return Err(OpError::Invalid);
        }
        let page = self.take(1)?;
        let mut bytes = target.to_vec();
        bytes.resize(PAGE as usize, 0);
        self.medium.write(page * PAGE, &bytes)?;
        let root = Root {
            page,
            leaf: true,
            ..Root::default()
        };
        let size = target.len() as u64;
        self.make(
            parent,
            text,
            New {
                mode: kind::LINK | 0o777,
                size,
                root,
                rdev: 0,
            },
        )
    }

    /// Creates a file without a name, which the caller has open.
    pub fn unnamed(&mut self, mode: u16) -> Result<u64> {
        let number = self.new_inode(New {
            mode: kind::FILE | mode,
            ..New::default()
        })?;
        self.fence()?;
        self.held.insert(number);
        Ok(number)
    }

    /// Gives an inode another name, or a first one.
    pub fn link(&mut self, number: u64, parent: u64, text: &[u8]) -> Result<()> {
        self.check_new(parent, text)?;
        if self.is_directory(number)? {
            return Err(OpError::Forbidden);
        }
        self.add_name(parent, text, number)?;
        if self.has(Fault::LinkNotCounted) {
            self.links.insert(number, 1);
        }
        Ok(())
    }

    pub fn unlink(&mut self, parent: u64, text: &[u8]) -> Result<()> {
        let number = self.lookup(parent, text)?;
        if self.is_directory(number)? {
            return Err(OpError::IsDirectory);
        }
        self.remove_name(parent, text, number)
    }

    pub fn rmdir(&mut self, parent: u64, text: &[u8]) -> Result<()> {
        let number = self.lookup(parent, text)?;
        if !self.is_directory(number)? {
            return Err(OpError::NotDirectory);
        }
        if !self.is_empty(number) {
            return Err(OpError::NotEmpty);
        }
        self.remove_name(parent, text, number)
    }

    /// Keeps an inode that loses its last name.
    pub fn open(&mut self, number: u64) {
        self.held.insert(number);
    }

    /// The last process closes an inode.
    pub fn close(&mut self, number: u64) -> Result<()> {
        self.held.remove(&number);
        self.drop_unused(number)
    }

    /// All processes end.
    pub fn close_all(&mut self) -> Result<()> {
        for number in self.held.clone() {
            self.close(number)?;
        }
        Ok(())
    }

    fn make(&mut self, parent: u64, text: &[u8], new: New) -> Result<u64> {
        let number = self.new_inode(new)?;
        self.add_name(parent, text, number)?;
        Ok(number)
    }

    /// Publishes a name of an inode.
    fn add_name(&mut self, parent: u64, text: &[u8], number: u64) -> Result<()> {
        let slot = self.new_name(parent, text, None)?;
        if !self.has(Fault::NoFenceBeforeName) {
            self.fence()?;
        }
        self.set(self.name_at(slot)? + name::INODE, number)?;
        self.touch(number)?;
        self.touch_content(parent)?;
        self.last_fence()?;
        self.record(slot, parent, text, number);
        Ok(())
    }

    /// Records a name in memory.
    pub(super) fn record(&mut self, slot: u64, parent: u64, text: &[u8], number: u64) {
        let text = text.to_vec();
        self.slots.insert((parent, text.clone()), slot);
        self.names.insert(
            slot,
            Name {
                parent,
                text,
                inode: number,
            },
        );
        *self.links.entry(number).or_default() += 1;
    }

    pub(super) fn forget(&mut self, slot: u64) {
        if let Some(name) = self.names.remove(&slot) {
            self.slots.remove(&(name.parent, name.text));
            self.links
                .entry(name.inode)
                .and_modify(|links| *links = links.saturating_sub(1));
        }
    }

    fn remove_name(&mut self, parent: u64, text: &[u8], number: u64) -> Result<()> {
        let slot = self.slots[&(parent, text.to_vec())];
        let at = self.name_at(slot)? + name::INODE;
        if self.has(Fault::ReusedEarly) {
            self.medium.store_word(at, 0)?;
        } else {
            self.set(at, 0)?;
        }
        self.touch(number)?;
        self.touch_content(parent)?;
        self.fence()?;
        self.forget(slot);
        self.drop_unused(number)
    }

    /// Removes an inode that has no name and is not open, and frees its pages.
    pub(super) fn drop_unused(&mut self, number: u64) -> Result<()> {
        if self.links.get(&number).is_some_and(|links| *links > 0) || self.held.contains(&number) {
            return Ok(());
        }
        let at = self.at(number)?;
        let mut pages = vec![(self.get(at + inode::XATTR)?, 1)];
        self.nodes(at + inode::ROOT, |node| {
            pages.push((node.page, node.count()))
        })?;
        self.publish(at + inode::MODE, 0)?;
        for (page, count) in pages.into_iter().filter(|(page, _)| *page != 0) {
            self.owned.release(page, count);
        }
        self.inodes.remove(&number);
        self.links.remove(&number);
        Ok(())
    }

    fn check_new(&self, parent: u64, text: &[u8]) -> Result<()> {
        if !self.is_directory(parent)? {
            return Err(OpError::NotDirectory);
        }
        if !is_name(text) {
            return Err(OpError::Invalid);
        }
        match self.lookup(parent, text) {
            Ok(_) => Err(OpError::Exists),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn is_directory(&self, number: u64) -> Result<bool> {
        let mode = self.field(number, inode::MODE)? as u16;
        Ok(mode & kind::MASK == kind::DIRECTORY)
    }

    pub(super) fn is_empty(&self, directory: u64) -> bool {
        !self.names.values().any(|name| name.parent == directory)
    }
}
