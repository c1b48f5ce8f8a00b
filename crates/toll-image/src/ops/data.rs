// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations on the content of a morsel.

use std::io::Read;

use super::{Fs, OpError, Result};
use crate::fault::Fault;
use crate::layout::{LEAF_LEVEL, MOST_BYTES, PAGE, Root, inode, kind, pages_of, seal};
use crate::medium::Medium;

impl<M: Medium> Fs<M> {
    /// write(2): persistent when it returns.
    pub fn write(&mut self, number: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let end = offset
            .checked_add(bytes.len() as u64)
            .ok_or(OpError::Invalid)?;
        let size = self.check_write(number, end)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let at = self.at(number)?;
        if end > size && self.has(Fault::SizeFirst) {
            self.publish(at + inode::SIZE, end)?;
        }
        self.zero_tail(number, size, offset)?;
        self.store_content(number, offset, bytes)?;
        self.fence()?;
        if end > size {
            self.set(at + inode::SIZE, end)?;
        }
        self.touch_content(number)?;
        self.last_fence()
    }

    /// A store through a mapping. It is persistent after [`Fs::sync`].
    pub fn poke(&mut self, number: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let size = self.check_open(number)?;
        let length = bytes.len() as u64;
        let end = offset.checked_add(length).ok_or(OpError::Invalid)?;
        if end > size.next_multiple_of(PAGE) || offset % PAGE + length > PAGE {
            return Err(OpError::Invalid);
        }
        let page = self.filled(number, offset / PAGE)?;
        Ok(self.medium.store(page * PAGE + offset % PAGE, bytes)?)
    }

    /// fsync(2) and msync(2).
    pub fn sync(&mut self, number: u64) -> Result<()> {
        self.flush_content(number, self.has(Fault::FirstPageSynced))?;
        self.fence()
    }

    pub fn truncate(&mut self, number: u64, size: u64) -> Result<()> {
        let old = self.check_open(number)?;
        let root = self.root(number)?;
        let seal = if size > old { seal::GROW } else { seal::SHRINK };
        if size > MOST_BYTES {
            return Err(OpError::Invalid);
        }
        if size != old && root.seals & seal != 0 {
            return Err(OpError::Forbidden);
        }
        match size > old {
            true => self.zero_tail(number, old, size)?,
            false if self.has(Fault::PagesBeforeSize) => self.cut_beyond(number, size)?,
            false => {}
        }
        self.set(self.at(number)? + inode::SIZE, size)?;
        self.touch_content(number)?;
        self.last_fence()?;
        match size < old {
            true => self.cut_beyond(number, size),
            false => Ok(()),
        }
    }

    /// fallocate(2) with FALLOC_FL_PUNCH_HOLE.
    pub fn punch(&mut self, number: u64, offset: u64, length: u64) -> Result<()> {
        self.check_open(number)?;
        let end = offset.checked_add(length).ok_or(OpError::Invalid)?;
        let root = self.at(number)? + inode::ROOT;
        self.cut(root, offset.div_ceil(PAGE), end / PAGE)?;
        self.zero_range(number, offset, end)?;
        self.touch_content(number)?;
        self.fence()
    }

    /// fallocate(2) of one page or block, with FALLOC_FL_KEEP_SIZE.
    pub fn populate(&mut self, number: u64, index: u64, level: u8) -> Result<()> {
        let root = self.check_block(number, index, level)?;
        let page = self.take(pages_of(level))?;
        self.zero(page, pages_of(level))?;
        self.place(root, index, level, page)
    }

    /// Adds one page or block, with what is read from `content`, and zeros behind its end.
    pub fn fill(
        &mut self,
        number: u64,
        index: u64,
        level: u8,
        content: &mut impl Read,
    ) -> Result<()> {
        let root = self.check_block(number, index, level)?;
        let page = self.take(pages_of(level))?;
        if let Err(error) = self.copy(content, page, pages_of(level)) {
            self.owned.release(page, pages_of(level));
            return Err(error);
        }
        self.place(root, index, level, page)
    }

    /// Stores what is read into free pages, and flushes it; a fence follows.
    fn copy(&mut self, content: &mut impl Read, page: u64, count: u64) -> Result<()> {
        let most = count.min(pages_of(1));
        for at in (page..page + count).step_by(most as usize) {
            let mut bytes = Vec::with_capacity((most * PAGE) as usize);
            content.take(most * PAGE).read_to_end(&mut bytes)?;
            bytes.resize((most * PAGE) as usize, 0);
            self.medium.write(at * PAGE, &bytes)?;
        }
        Ok(())
    }

    /// The root word of a file that gets a block.
    fn check_block(&self, number: u64, index: u64, level: u8) -> Result<u64> {
        self.check_open(number)?;
        let root = self.at(number)? + inode::ROOT;
        let is_there = self.find(root, index)?.is_some();
        if level > LEAF_LEVEL || index % pages_of(level) != 0 || is_there {
            return Err(OpError::Exists);
        }
        Ok(root)
    }

    /// Adds seals. Everything that was written is persistent before they are.
    pub fn seal(&mut self, number: u64, seals: u8) -> Result<()> {
        self.check_file(number)?;
        let root = self.root(number)?;
        if root.seals & seal::SEAL != 0 {
            return Err(OpError::Forbidden);
        }
        let implied = match seals & seal::WRITE {
            0 => 0,
            _ => seal::SHRINK | seal::GROW,
        };
        let new = Root {
            seals: (root.seals | seals | implied) & seal::ALL,
            ..root
        };
        if !self.has(Fault::SealFirst) {
            self.flush_content(number, false)?;
            self.fence()?;
        }
        self.set(self.at(number)? + inode::ROOT, new.pack())?;
        self.touch(number)?;
        self.last_fence()
    }

    fn check_file(&self, number: u64) -> Result<()> {
        let mode = self.field(number, inode::MODE)? as u16;
        match mode & kind::MASK {
            kind::FILE => Ok(()),
            kind::DIRECTORY => Err(OpError::IsDirectory),
            _ => Err(OpError::Invalid),
        }
    }

    /// The size of a file that is not sealed.
    fn check_open(&self, number: u64) -> Result<u64> {
        self.check_file(number)?;
        match self.root(number)?.is_sealed() {
            true => Err(OpError::Forbidden),
            false => self.field(number, inode::SIZE),
        }
    }

    fn check_write(&self, number: u64, end: u64) -> Result<u64> {
        let size = self.check_open(number)?;
        let may_grow = self.root(number)?.seals & seal::GROW == 0;
        match end {
            end if end > MOST_BYTES => Err(OpError::Invalid),
            end if end > size && !may_grow => Err(OpError::Forbidden),
            _ => Ok(size),
        }
    }

    /// Stores bytes, page by page. A fence follows.
    fn store_content(&mut self, number: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut at = offset;
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = (PAGE - at % PAGE) as usize;
            let (part, after) = rest.split_at(room.min(rest.len()));
            self.store_part(number, at, part)?;
            at += part.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Stores bytes of one page: in place, or in a new page that is then published.
    fn store_part(&mut self, number: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let root = self.at(number)? + inode::ROOT;
        let within = offset % PAGE;
        if let Some(page) = self.find(root, offset / PAGE)? {
            return Ok(self.medium.write(page * PAGE + within, bytes)?);
        }
        let page = self.take(1)?;
        if self.has(Fault::PublishFirst) {
            self.place(root, offset / PAGE, 0, page)?;
        }
        let mut content = vec![0; PAGE as usize];
        content[within as usize..][..bytes.len()].copy_from_slice(bytes);
        self.medium.write(page * PAGE, &content)?;
        match self.has(Fault::PublishFirst) {
            true => Ok(()),
            false => self.place(root, offset / PAGE, 0, page),
        }
    }

    /// The page of an index, which a fault fills if it is missing.
    fn filled(&mut self, number: u64, index: u64) -> Result<u64> {
        let root = self.at(number)? + inode::ROOT;
        if let Some(page) = self.find(root, index)? {
            return Ok(page);
        }
        let page = self.take(1)?;
        self.zero(page, 1)?;
        self.place(root, index, 0, page)?;
        Ok(page)
    }

    /// Clears what lies beyond the end, before the end moves.
    fn zero_tail(&mut self, number: u64, from: u64, to: u64) -> Result<()> {
        if from >= to || self.has(Fault::StaleTail) {
            return Ok(());
        }
        self.zero_range(number, from, to)?;
        self.fence()
    }

    /// Clears bytes where there are pages, and flushes them. A fence follows.
    fn zero_range(&mut self, number: u64, from: u64, to: u64) -> Result<()> {
        for (index, page, count) in self.leaves(number)? {
            let begin = (index * PAGE).max(from);
            let end = ((index + count) * PAGE).min(to);
            if begin < end {
                self.zero_bytes(page * PAGE + begin - index * PAGE, end - begin)?;
            }
        }
        Ok(())
    }

    /// Index, page and number of pages of each block.
    fn leaves(&self, number: u64) -> Result<Vec<(u64, u64, u64)>> {
        let mut leaves = Vec::new();
        let root = self.at(number)? + inode::ROOT;
        self.nodes(root, |node| {
            if node.leaf {
                leaves.push((node.index, node.page, node.count()));
            }
        })?;
        Ok(leaves)
    }

    fn flush_content(&mut self, number: u64, first_only: bool) -> Result<()> {
        let leaves = self.leaves(number)?;
        let most = if first_only { 1 } else { leaves.len() };
        for (_, page, count) in leaves.into_iter().take(most) {
            self.medium.flush(page * PAGE..(page + count) * PAGE)?;
        }
        Ok(())
    }

    fn cut_beyond(&mut self, number: u64, size: u64) -> Result<()> {
        let root = self.at(number)? + inode::ROOT;
        self.cut(root, size.div_ceil(PAGE), u64::MAX)
    }
}
