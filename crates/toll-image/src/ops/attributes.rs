// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations that change attributes: words of their own, or a new page.

use super::{Fs, OpError, Result};
use crate::fault::Fault;
use crate::layout::{PAGE, Time, inode, kind};
use crate::medium::Medium;
use crate::xattr::{self, Attributes};

impl<M: Medium> Fs<M> {
    pub fn chmod(&mut self, number: u64, rights: u16) -> Result<()> {
        let at = self.at(number)?;
        let kind = self.get(at + inode::MODE)? & u64::from(kind::MASK);
        self.set(at + inode::MODE, kind | u64::from(rights & 0o7777))?;
        self.touch(number)?;
        self.last_fence()
    }

    pub fn chown(&mut self, number: u64, uid: u32, gid: u32) -> Result<()> {
        let at = self.at(number)?;
        self.set(at + inode::UID, uid.into())?;
        self.set(at + inode::GID, gid.into())?;
        self.touch(number)?;
        self.last_fence()
    }

    pub fn utime(&mut self, number: u64, mtime: Time) -> Result<()> {
        let at = self.at(number)?;
        self.set(at + inode::MTIME, mtime.pack())?;
        self.touch(number)?;
        self.last_fence()
    }

    /// Sets an extended attribute, or removes it. The page is written anew.
    pub fn setxattr(&mut self, number: u64, name: &[u8], value: Option<&[u8]>) -> Result<()> {
        let word = self.at(number)? + inode::XATTR;
        let old = self.get(word)?;
        let mut attributes = self.attributes(old)?;
        match value {
            Some(value) => drop(attributes.insert(name.to_vec(), value.to_vec())),
            None => drop(attributes.remove(name).ok_or(OpError::NoEntry)?),
        }
        let new = self.attributes_page(&attributes, old)?;
        self.set(word, new)?;
        self.touch(number)?;
        self.fence()?;
        if old != 0 && old != new {
            self.owned.release(old, 1);
        }
        Ok(())
    }

    fn attributes(&self, page: u64) -> Result<Attributes> {
        match page {
            0 => Ok(Attributes::new()),
            page => xattr::decode(&self.medium.page(page)?, page).ok_or(OpError::Invalid),
        }
    }

    /// A page with attributes that is persistent, or 0 for none.
    fn attributes_page(&mut self, attributes: &Attributes, old: u64) -> Result<u64> {
        if attributes.is_empty() {
            return Ok(0);
        }
        xattr::encode(attributes, 0).ok_or(OpError::NoSpace)?;
        let page = match self.has(Fault::AttributesInPlace) && old != 0 {
            true => old,
            false => self.take(1)?,
        };
        let bytes = xattr::encode(attributes, page).ok_or(OpError::NoSpace)?;
        self.medium.write(page * PAGE, &bytes)?;
        self.fence()?;
        Ok(page)
    }
}
