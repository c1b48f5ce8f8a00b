// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operations of the file system: the order of their stores, flushes and fences.
//!
//! The operations of the kernel have the same order. What is kept here beside the medium is what
//! the kernel keeps in memory: free pages, the names, and the link counts.

mod attributes;
mod data;
mod names;
mod rename;
mod slots;
mod tree;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use thiserror::Error;

use crate::fault::Fault;
use crate::layout::{Root, Time, inode};
use crate::medium::{Medium, payload_at};
use crate::owned::Owned;
use crate::recover::{Unrecovered, recover_with};
use crate::survey::Name;

/// Why an operation fails. Nothing is changed then.
#[derive(Debug, Error)]
pub enum OpError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("ENOENT")]
    NoEntry,
    #[error("EEXIST")]
    Exists,
    #[error("ENOTEMPTY")]
    NotEmpty,
    #[error("ENOTDIR")]
    NotDirectory,
    #[error("EISDIR")]
    IsDirectory,
    #[error("EPERM")]
    Forbidden,
    #[error("ENOSPC")]
    NoSpace,
    #[error("EINVAL")]
    Invalid,
}

pub type Result<T> = std::result::Result<T, OpError>;

/// Flags of a rename, as of renameat2(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rename {
    Replace,
    NoReplace,
    Exchange,
    Whiteout,
}

/// A mounted range.
#[derive(Debug, Clone)]
pub struct Fs<M> {
    medium: M,
    owned: Owned,
    /// Pages of the trees of inodes and names, by index.
    inode_pages: BTreeMap<u64, u64>,
    name_pages: BTreeMap<u64, u64>,
    /// Places of the slots of inodes that are in use.
    inodes: BTreeMap<u64, u64>,
    /// Names by slot, and slots by directory and name.
    names: BTreeMap<u64, Name>,
    slots: HashMap<(u64, Vec<u8>), u64>,
    links: BTreeMap<u64, u64>,
    /// Inodes that a process has open.
    held: BTreeSet<u64>,
    /// The time that operations record.
    pub now: Time,
    fault: Option<Fault>,
}

impl<M: Medium> Fs<M> {
    /// Recovers a range, and mounts it.
    pub fn mount(medium: M) -> std::result::Result<Fs<M>, Unrecovered> {
        Fs::mount_with(medium, None)
    }

    /// [`Fs::mount`] with an injected bug.
    pub fn mount_with(
        mut medium: M,
        fault: Option<Fault>,
    ) -> std::result::Result<Fs<M>, Unrecovered> {
        let survey = recover_with(&mut medium, fault)?;
        let slots = survey.names.iter();
        let slots = slots.map(|(slot, name)| ((name.parent, name.text.clone()), *slot));
        let mut fs = Fs {
            medium,
            slots: slots.collect(),
            owned: survey.owned,
            inode_pages: survey.inode_pages,
            name_pages: survey.name_pages,
            inodes: survey
                .inodes
                .iter()
                .map(|(number, inode)| (*number, inode.at))
                .collect(),
            names: survey.names,
            links: BTreeMap::new(),
            held: BTreeSet::new(),
            now: Time::default(),
            fault,
        };
        fs.links = survey
            .inodes
            .iter()
            .map(|(number, inode)| (*number, inode.links))
            .collect();
        Ok(fs)
    }

    /// Injects a bug from here on.
    pub fn inject(&mut self, fault: Option<Fault>) {
        self.fault = fault;
    }

    pub fn medium(&self) -> &M {
        &self.medium
    }

    pub fn into_medium(self) -> M {
        self.medium
    }

    pub fn medium_mut(&mut self) -> &mut M {
        &mut self.medium
    }

    /// The pages that are not free.
    pub fn owned(&self) -> &Owned {
        &self.owned
    }

    /// The inode of a name.
    pub fn lookup(&self, parent: u64, text: &[u8]) -> Result<u64> {
        let slot = self
            .slots
            .get(&(parent, text.to_vec()))
            .ok_or(OpError::NoEntry)?;
        Ok(self.names[slot].inode)
    }

    /// The names of a directory, with their inodes.
    pub fn names_of(&self, directory: u64) -> impl Iterator<Item = (&[u8], u64)> {
        let names = self.names.values();
        names
            .filter(move |name| name.parent == directory)
            .map(|name| (&*name.text, name.inode))
    }

    /// All names of an inode, with their directories.
    pub fn names_for(&self, number: u64) -> Vec<(u64, Vec<u8>)> {
        let names = self.names.values().filter(|name| name.inode == number);
        names.map(|name| (name.parent, name.text.clone())).collect()
    }

    /// Type and permissions of an inode.
    pub fn mode(&self, number: u64) -> Result<u16> {
        Ok(self.field(number, inode::MODE)? as u16)
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The place of an inode.
    fn at(&self, number: u64) -> Result<u64> {
        self.inodes.get(&number).copied().ok_or(OpError::NoEntry)
    }

    /// The payload of a word.
    fn get(&self, offset: u64) -> Result<u64> {
        let payload = payload_at(&self.medium, offset)?;
        payload.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData).into())
    }

    fn field(&self, number: u64, field: u64) -> Result<u64> {
        self.get(self.at(number)? + field)
    }

    fn root(&self, number: u64) -> Result<Root> {
        Ok(Root::unpack(self.field(number, inode::ROOT)?))
    }

    /// Stores a word and flushes it; a fence follows.
    fn set(&mut self, offset: u64, payload: u64) -> Result<()> {
        Ok(self.medium.write_word(offset, payload)?)
    }

    /// Stores a word, and makes it persistent.
    fn publish(&mut self, offset: u64, payload: u64) -> Result<()> {
        Ok(self.medium.publish(offset, payload)?)
    }

    fn fence(&mut self) -> Result<()> {
        Ok(self.medium.fence()?)
    }

    /// The fence at the end of an operation.
    fn last_fence(&mut self) -> Result<()> {
        match self.has(Fault::NoFenceAfterPublish) {
            true => Ok(()),
            false => self.fence(),
        }
    }

    /// Records that the content of an inode changed; a fence follows.
    fn touch_content(&mut self, number: u64) -> Result<()> {
        let at = self.at(number)?;
        self.set(at + inode::MTIME, self.now.pack())?;
        self.set(at + inode::CTIME, self.now.pack())
    }

    /// Records that an attribute of an inode changed; a fence follows.
    fn touch(&mut self, number: u64) -> Result<()> {
        let at = self.at(number)?;
        self.set(at + inode::CTIME, self.now.pack())
    }
}

#[cfg(test)]
mod tests;
