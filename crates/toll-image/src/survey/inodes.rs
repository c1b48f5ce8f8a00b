// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slots of inodes.

use std::collections::BTreeMap;
use std::io;

use super::{Inode, Reader};
use crate::finding::Fix;
use crate::layout::{MOST_BYTES, PAGE, Root, Time, inode, kind};
use crate::medium::Source;
use crate::word::{decode, number_at};

/// The words of one slot.
struct Slot<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl Slot<'_> {
    fn word(&self, field: u64) -> Option<u64> {
        decode(self.at + field, number_at(self.bytes, field as usize))
    }
}

impl<S: Source> Reader<'_, S> {
    pub(super) fn inodes(
        &mut self,
        pages: &BTreeMap<u64, u64>,
    ) -> io::Result<BTreeMap<u64, Inode>> {
        let mut inodes = BTreeMap::new();
        for (index, page) in pages {
            let bytes = self.source.page(*page)?;
            for (n, bytes) in bytes.chunks_exact(inode::SLOT as usize).enumerate() {
                let at = page * PAGE + n as u64 * inode::SLOT;
                let number = index * inode::PER_PAGE + n as u64;
                let found = self.inode(number, &Slot { bytes, at });
                inodes.extend(found.map(|found| (number, found)));
            }
        }
        if !inodes.get(&inode::FIRST).is_some_and(Inode::is_directory) {
            let what = "the root directory is missing";
            self.findings
                .damage(crate::layout::INODES, None, what, None);
        }
        Ok(inodes)
    }

    /// The inode of a slot; `None` if it is free, or cannot be used.
    fn inode(&mut self, number: u64, slot: &Slot) -> Option<Inode> {
        let root = slot.word(inode::ROOT).map(Root::unpack);
        let keep = root.is_none_or(Root::is_sealed);
        let mode = self.field(number, slot, inode::MODE, keep);
        if mode == Some(0) {
            return None;
        }
        let found = self.fields(number, slot, root, keep, mode?)?;
        self.kind(number, slot, found)
    }

    fn fields(
        &mut self,
        number: u64,
        slot: &Slot,
        root: Option<Root>,
        keep: bool,
        mode: u64,
    ) -> Option<Inode> {
        if root.is_none() {
            let what = "the root of a morsel is damaged";
            self.findings
                .damage(slot.at + inode::ROOT, Some(number), what, None);
        }
        let mut field = |at| self.field(number, slot, at, keep);
        let size = field(inode::SIZE);
        let mut number_of = |at| field(at).unwrap_or(0);
        Some(Inode {
            at: slot.at,
            mode: u16::try_from(mode).unwrap_or(0),
            uid: number_of(inode::UID) as u32,
            gid: number_of(inode::GID) as u32,
            size: size?,
            root: root?,
            keep,
            xattr: number_of(inode::XATTR),
            mtime: Time::unpack(number_of(inode::MTIME)).unwrap_or_default(),
            ctime: Time::unpack(number_of(inode::CTIME)).unwrap_or_default(),
            rdev: number_of(inode::RDEV) as u32,
            generation: number_of(inode::GENERATION) as u32,
            links: 0,
            blocks: [0; 3],
            tables: 0,
        })
    }

    /// The payload of a field. A damaged one of an open morsel can be dropped: to 0, or with a size,
    /// the morsel.
    fn field(&mut self, number: u64, slot: &Slot, field: u64, keep: bool) -> Option<u64> {
        let payload = slot.word(field);
        let fits = payload.is_some_and(|payload| is_in_range(field, payload));
        if fits {
            return payload;
        }
        let dropped = match field {
            inode::SIZE => inode::MODE,
            field => field,
        };
        let offset = slot.at + dropped;
        let fix = (!keep && number != inode::FIRST).then_some(Fix::Set { offset, payload: 0 });
        let what = "a word of an inode is damaged";
        self.findings
            .damage(slot.at + field, Some(number), what, fix);
        None
    }

    /// Checks what depends on the type.
    fn kind(&mut self, number: u64, slot: &Slot, found: Inode) -> Option<Inode> {
        let has_data = found.root.page != 0 || found.size != 0;
        let what = match found.kind() {
            _ if number == 0 => "the inode 0 is in use",
            kind::FILE => return Some(found),
            kind::LINK if is_link(&found) => return Some(found),
            kind::LINK => "a symbolic link has no target",
            kind::DIRECTORY | kind::FIFO | kind::CHARACTER | kind::BLOCK | kind::SOCKET => {
                match has_data {
                    false => return Some(found),
                    true => "an inode that is no file has data",
                }
            }
            _ => "the type of an inode is not known",
        };
        let offset = slot.at + inode::MODE;
        let drops = !found.keep && number != inode::FIRST && !found.is_directory();
        let fix = drops.then_some(Fix::Set { offset, payload: 0 });
        self.findings.damage(offset, Some(number), what, fix);
        None
    }
}

fn is_link(found: &Inode) -> bool {
    let root = found.root;
    (1..PAGE).contains(&found.size) && root.page != 0 && root.level == 0 && root.leaf
}

/// Whether a field can have this payload.
fn is_in_range(field: u64, payload: u64) -> bool {
    match field {
        inode::MODE => payload <= u64::from(u16::MAX),
        inode::UID | inode::GID | inode::RDEV | inode::GENERATION => payload <= u64::from(u32::MAX),
        inode::SIZE => payload <= MOST_BYTES,
        inode::XATTR => payload >> crate::layout::PAGE_BITS == 0,
        inode::MTIME | inode::CTIME => Time::unpack(payload).is_some(),
        _ => true,
    }
}
