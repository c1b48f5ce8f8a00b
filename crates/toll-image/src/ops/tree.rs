// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages and the trees that own them.

use super::{Fs, OpError, Result};
use crate::fault::Fault;
use crate::layout::{Entry, PAGE, Root, TOP_LEVEL, pages_of, slot_of};
use crate::medium::Medium;
use crate::survey::tree::{Node, Step, walk};

/// Tables that one block can need: above it, and above the root.
const MOST_TABLES: u64 = 2 * TOP_LEVEL as u64;

/// A word that leads to nodes, and the pages of those.
#[derive(Debug, Default)]
struct Victim {
    word: u64,
    pages: Vec<(u64, u64)>,
}

impl<M: Medium> Fs<M> {
    /// Takes an aligned block of free pages.
    pub(super) fn take(&mut self, count: u64) -> Result<u64> {
        let page = self.owned.free_block(count).ok_or(OpError::NoSpace)?;
        self.owned.take(page, count).map_err(|_| OpError::NoSpace)?;
        Ok(page)
    }

    /// Clears pages and flushes them; a fence follows.
    pub(super) fn zero(&mut self, page: u64, count: u64) -> Result<()> {
        self.zero_bytes(page * PAGE, count * PAGE)
    }

    pub(super) fn zero_bytes(&mut self, offset: u64, length: u64) -> Result<()> {
        Ok(self.medium.write(offset, &vec![0; length as usize])?)
    }

    /// Publishes a block, the content flushed before, or frees it. `index` is that of its first page.
    pub(super) fn place(&mut self, root_at: u64, index: u64, level: u8, page: u64) -> Result<()> {
        let free = self.owned.pages() - self.owned.count();
        let placed = match free < MOST_TABLES {
            true => Err(OpError::NoSpace),
            false => self.place_in(root_at, index, level, page),
        };
        if placed.is_err() {
            self.owned.release(page, pages_of(level));
        }
        placed
    }

    fn place_in(&mut self, root_at: u64, index: u64, level: u8, page: u64) -> Result<()> {
        let root = Root::unpack(self.get(root_at)?);
        if root.page == 0 {
            return self.place_first(root_at, root, index, level, page);
        }
        if index >> (9 * u32::from(root.level)) != 0 || level > root.level {
            self.grow(root_at, root)?;
            return self.place_in(root_at, index, level, page);
        }
        let mut table = Node {
            index: 0,
            level: root.level,
            leaf: root.leaf,
            page: root.page,
            word: 0,
        };
        while !table.leaf && table.level > level {
            let word = table.page * PAGE + slot_of(index, table.level) * 8;
            let below = table.level - 1;
            let payload = self.get(word)?;
            if payload == 0 {
                let entry = self.chain(index, level, page, below)?;
                self.fence()?;
                return self.publish(word, entry.pack());
            }
            let entry = Entry::unpack(payload).ok_or(OpError::Invalid)?;
            table = Node {
                level: below,
                leaf: entry.leaf,
                page: entry.page,
                ..table
            };
        }
        Err(OpError::Exists)
    }

    /// The first block of a tree.
    fn place_first(
        &mut self,
        root_at: u64,
        root: Root,
        index: u64,
        level: u8,
        page: u64,
    ) -> Result<()> {
        let covers = |top: &u8| index >> (9 * u32::from(*top)) == 0;
        let top = (level..=TOP_LEVEL).find(covers).ok_or(OpError::Invalid)?;
        let entry = self.chain(index, level, page, top)?;
        let new = Root {
            page: entry.page,
            level: top,
            leaf: entry.leaf,
            seals: root.seals,
        };
        self.fence()?;
        self.publish(root_at, new.pack())
    }

    /// Makes the tables between a block and a level, and returns the entry for the topmost one. A
    /// fence follows.
    fn chain(&mut self, index: u64, level: u8, page: u64, top: u8) -> Result<Entry> {
        let mut entry = Entry { page, leaf: true };
        for above in level + 1..=top {
            entry = self.table_with(slot_of(index, above), entry)?;
        }
        Ok(entry)
    }

    /// Makes a table with one entry, and flushes it.
    fn table_with(&mut self, slot: u64, entry: Entry) -> Result<Entry> {
        let page = self.take(1)?;
        self.medium.store(page * PAGE, &[0; PAGE as usize])?;
        self.medium
            .store_word(page * PAGE + slot * 8, entry.pack())?;
        self.medium.flush(page * PAGE..(page + 1) * PAGE)?;
        Ok(Entry { page, leaf: false })
    }

    /// Adds a level at the top.
    fn grow(&mut self, root_at: u64, mut root: Root) -> Result<()> {
        if root.level == TOP_LEVEL {
            return Err(OpError::Invalid);
        }
        if self.has(Fault::SealsForgotten) {
            root.seals = 0;
        }
        if self.has(Fault::RootFirst) {
            return self.grow_root_first(root_at, root);
        }
        let old = match self.has(Fault::OldRootForgotten) {
            true => return self.grow_empty(root_at, root),
            false => Entry {
                page: root.page,
                leaf: root.leaf,
            },
        };
        let table = self.table_with(0, old)?;
        self.fence()?;
        self.publish(root_at, above(root, table.page).pack())
    }

    /// Removes the pages of a range of a tree: clears what leads to them, and frees them once that
    /// is persistent. Blocks that are in the range in part stay.
    pub(super) fn cut(&mut self, root_at: u64, first: u64, end: u64) -> Result<()> {
        let victims = self.victims(root_at, first, end)?;
        if victims.is_empty() {
            return Ok(());
        }
        let root = Root::unpack(self.get(root_at)?);
        for victim in &victims {
            let payload = match victim.word == root_at {
                true => Root {
                    seals: root.seals,
                    ..Root::default()
                }
                .pack(),
                false => 0,
            };
            self.set(victim.word, payload)?;
        }
        self.fence()?;
        for (page, count) in victims.iter().flat_map(|victim| &victim.pages) {
            self.owned.release(*page, *count);
        }
        Ok(())
    }

    /// The topmost nodes inside of a range.
    fn victims(&self, root_at: u64, first: u64, end: u64) -> Result<Vec<Victim>> {
        let mut victims: Vec<Victim> = Vec::new();
        let mut covered = 0..0;
        self.nodes(root_at, |node| {
            let its_end = node.index + pages_of(node.level);
            let is_below = !covered.is_empty() && its_end <= covered.end;
            if !is_below && node.index >= first && its_end <= end {
                covered = node.index..its_end;
                victims.push(Victim {
                    word: node.word,
                    pages: Vec::new(),
                });
            }
            if covered.contains(&node.index) && !covered.is_empty() {
                victims
                    .last_mut()
                    .into_iter()
                    .for_each(|it| it.pages.push((node.page, node.count())));
            }
        })?;
        Ok(victims)
    }

    /// Visits all nodes of a tree. Its words were checked when it was mounted.
    pub(super) fn nodes(&self, root_at: u64, mut visit: impl FnMut(Node)) -> Result<()> {
        let root = Root::unpack(self.get(root_at)?);
        let mut is_damaged = false;
        walk(&self.medium, root_at, root, &mut |node| {
            match node {
                Ok(node) => visit(node),
                Err(_) => is_damaged = true,
            }
            Step::Enter
        })?;
        match is_damaged {
            true => Err(std::io::Error::from(std::io::ErrorKind::InvalidData).into()),
            false => Ok(()),
        }
    }

    /// The page of an index, and whether it is there.
    pub(super) fn find(&self, root_at: u64, index: u64) -> Result<Option<u64>> {
        let root = Root::unpack(self.get(root_at)?);
        if root.page == 0 || index >> (9 * u32::from(root.level)) != 0 {
            return Ok(None);
        }
        let (mut page, mut leaf, mut level) = (root.page, root.leaf, root.level);
        while !leaf {
            let payload = self.get(page * PAGE + slot_of(index, level) * 8)?;
            if payload == 0 {
                return Ok(None);
            }
            let entry = Entry::unpack(payload).ok_or(OpError::Invalid)?;
            (page, leaf, level) = (entry.page, entry.leaf, level - 1);
        }
        Ok(Some(page + index % pages_of(level)))
    }
}

/// The root of a tree that has one more level.
fn above(root: Root, page: u64) -> Root {
    Root {
        page,
        level: root.level + 1,
        leaf: false,
        seals: root.seals,
    }
}

/// Injected bugs.
impl<M: Medium> Fs<M> {
    fn grow_root_first(&mut self, root_at: u64, root: Root) -> Result<()> {
        let page = self.take(1)?;
        self.publish(root_at, above(root, page).pack())?;
        self.zero(page, 1)?;
        let entry = Entry {
            page: root.page,
            leaf: root.leaf,
        };
        self.publish(page * PAGE, entry.pack())
    }

    fn grow_empty(&mut self, root_at: u64, root: Root) -> Result<()> {
        let page = self.take(1)?;
        self.zero(page, 1)?;
        self.fence()?;
        self.publish(root_at, above(root, page).pack())
    }
}
