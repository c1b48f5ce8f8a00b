// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a whole range, and checks all of it before anything is used.
//!
//! The order: superblock, tree of inodes, tree of names, pending renames, names, and then the data
//! of what has a name. Each page is taken once, so the time is linear in the range.

mod data;
mod inodes;
mod names;
mod pending;
pub mod tree;

pub use names::is_name;

use std::collections::BTreeMap;
use std::io;

use crate::finding::{Findings, Fix};
use crate::layout::{INODES, NAMES, PAGE, Root, Time, kind};
use crate::medium::Source;
use crate::owned::Owned;
use crate::superblock::{Refusal, Superblock};
use tree::{Step, walk};

/// An inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inode {
    /// The place of its slot.
    pub at: u64,
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub root: Root,
    /// Whether it may be sealed: it is, or the word that would say so is damaged.
    pub keep: bool,
    /// Page of its extended attributes, or 0.
    pub xattr: u64,
    pub mtime: Time,
    pub ctime: Time,
    pub rdev: u32,
    pub generation: u32,
    /// Names that lead to it.
    pub links: u64,
    /// Blocks of 4 KiB, 2 MiB and 1 GiB of its content, and pages of its tables.
    pub blocks: [u64; 3],
    pub tables: u64,
}

impl Inode {
    pub fn kind(&self) -> u16 {
        self.mode & kind::MASK
    }

    pub fn is_directory(&self) -> bool {
        self.kind() == kind::DIRECTORY
    }
}

/// A name, after pending renames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub parent: u64,
    pub text: Vec<u8>,
    pub inode: u64,
}

/// All of a range.
#[derive(Debug)]
pub struct Survey {
    pub superblock: Superblock,
    /// Inodes by number.
    pub inodes: BTreeMap<u64, Inode>,
    /// Names by slot.
    pub names: BTreeMap<u64, Name>,
    /// Pages of the trees of inodes and names, in order.
    pub inode_pages: BTreeMap<u64, u64>,
    pub name_pages: BTreeMap<u64, u64>,
    /// Pages that something reachable owns.
    pub owned: Owned,
    pub findings: Findings,
}

/// A survey in progress.
struct Reader<'a, S> {
    source: &'a S,
    owned: Owned,
    findings: Findings,
}

/// Reads and checks a range.
pub fn survey(source: &impl Source) -> Result<Survey, Refusal> {
    survey_with(source, None)
}

/// [`survey()`] with an injected bug.
pub fn survey_with(
    source: &impl Source,
    fault: Option<crate::fault::Fault>,
) -> Result<Survey, Refusal> {
    let found = Superblock::read(source)?;
    let mut reader = Reader {
        source,
        owned: Owned::new(found.superblock.pages),
        findings: Findings::default(),
    };
    reader.superblock(&found.damaged);
    let inode_pages = reader.metadata(INODES)?;
    let mut inodes = reader.inodes(&inode_pages)?;
    let name_pages = reader.metadata(NAMES)?;
    let raw = reader.raw_names(&name_pages)?;
    let names = reader.names(raw, &inodes, fault);
    reader.count_links(&names, &mut inodes);
    reader.data(&mut inodes)?;
    Ok(Survey {
        superblock: found.superblock,
        inodes,
        names,
        inode_pages,
        name_pages,
        owned: reader.owned,
        findings: reader.findings,
    })
}

impl<S: Source> Reader<'_, S> {
    fn superblock(&mut self, damaged: &[u64]) {
        // Both are inside of the range.
        let _ = self.owned.take(0, 2);
        for page in damaged.iter().copied() {
            let fix = Some(Fix::Superblock { page });
            let what = "a copy of the superblock is damaged";
            self.findings.damage(page * PAGE, None, what, fix);
        }
    }
}

impl Survey {
    /// The content of a file; holes are zeros.
    ///
    /// # Errors
    /// The source cannot be read.
    pub fn content(&self, source: &impl Source, number: u64) -> io::Result<Vec<u8>> {
        let found = &self.inodes[&number];
        let pages = found.size.div_ceil(PAGE);
        let mut bytes = vec![0; (pages * PAGE) as usize];
        let mut blocks = Vec::new();
        walk(source, found.at, found.root, &mut |node| {
            blocks.extend(node.ok().filter(|node| node.leaf));
            Step::Enter
        })?;
        for block in blocks {
            for page in (0..block.count()).take_while(|page| block.index + page < pages) {
                let at = ((block.index + page) * PAGE) as usize;
                bytes[at..at + PAGE as usize].copy_from_slice(&source.page(block.page + page)?);
            }
        }
        bytes.truncate(found.size as usize);
        Ok(bytes)
    }

    /// Pages that are free after a recovery.
    pub fn free(&self) -> u64 {
        self.superblock.pages - self.owned.count()
    }

    /// The inode that a path leads to.
    pub fn lookup(&self, path: &[u8]) -> Option<u64> {
        let parts = path
            .split(|byte| *byte == b'/')
            .filter(|part| !part.is_empty());
        let mut inode = crate::layout::inode::FIRST;
        for part in parts {
            inode = self.child(inode, part)?;
        }
        Some(inode)
    }

    fn child(&self, parent: u64, text: &[u8]) -> Option<u64> {
        let mut names = self.names.values();
        let name = names.find(|name| name.parent == parent && name.text == text)?;
        Some(name.inode)
    }
}

#[cfg(test)]
mod tests;
