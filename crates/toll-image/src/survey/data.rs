// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data of what has a name.

use std::collections::BTreeMap;
use std::io;

use super::tree::{Bad, Node, Step, take, walk};
use super::{Inode, Reader};
use crate::finding::Fix;
use crate::layout::{PAGE, Root, inode, kind};
use crate::medium::Source;
use crate::xattr;

impl<S: Source> Reader<'_, S> {
    /// Takes the pages of all morsels: of sealed ones first, so that an open one that claims the
    /// same page is the one that is dropped.
    pub(super) fn data(&mut self, inodes: &mut BTreeMap<u64, Inode>) -> io::Result<()> {
        for sealed in [true, false] {
            for (number, found) in inodes.iter_mut() {
                let is_reachable = found.links > 0 || *number == inode::FIRST;
                if found.keep == sealed && is_reachable {
                    self.morsel(*number, found)?;
                }
            }
        }
        Ok(())
    }

    fn morsel(&mut self, number: u64, found: &mut Inode) -> io::Result<()> {
        self.tree(number, found)?;
        if found.kind() == kind::LINK {
            self.link(number, found)?;
        }
        self.xattr(number, found)
    }

    fn tree(&mut self, number: u64, found: &mut Inode) -> io::Result<()> {
        let (owned, findings) = (&mut self.owned, &mut self.findings);
        let (at, root, keep) = (found.at + inode::ROOT, found.root, found.keep);
        let end = found.size.div_ceil(PAGE);
        let limit = owned.pages();
        let cut = |word| Fix::Set {
            offset: word,
            payload: without(at, word, root),
        };
        walk(self.source, at, root, &mut |node| {
            let node = match node {
                Ok(node) if node.index >= end && !keep => {
                    let what = "a page lies beyond the end of an open morsel";
                    findings.leftover(node.word, Some(number), what, cut(node.word));
                    return Step::Skip;
                }
                node => node.and_then(|node| {
                    take(owned, node.page, node.count(), node.word, limit).map(|()| node)
                }),
            };
            match node {
                Ok(node) => count(found, &node),
                Err(Bad { word, what }) => {
                    findings.damage(word, Some(number), what, (!keep).then(|| cut(word)));
                    return Step::Skip;
                }
            }
            Step::Enter
        })
    }

    fn link(&mut self, number: u64, found: &Inode) -> io::Result<()> {
        if !(2..self.owned.pages()).contains(&found.root.page) {
            return Ok(());
        }
        let page = self.source.page(found.root.page)?;
        if page[..found.size as usize].contains(&0) {
            let offset = found.at + inode::MODE;
            let what = "the target of a symbolic link is damaged";
            self.findings.damage(
                offset,
                Some(number),
                what,
                Some(Fix::Set { offset, payload: 0 }),
            );
        }
        Ok(())
    }

    fn xattr(&mut self, number: u64, found: &Inode) -> io::Result<()> {
        let offset = found.at + inode::XATTR;
        let fix = (!found.keep).then_some(Fix::Set { offset, payload: 0 });
        if found.xattr == 0 || !self.take_page(found.xattr, offset, number, fix.clone()) {
            return Ok(());
        }
        let page = self.source.page(found.xattr)?;
        if xattr::decode(&page, found.xattr).is_none() {
            let what = "extended attributes are damaged";
            self.findings.damage(offset, Some(number), what, fix);
        }
        Ok(())
    }
}

/// The payload of a word that no longer leads anywhere: the root keeps its seals.
fn without(at: u64, word: u64, root: Root) -> u64 {
    match word == at {
        true => Root {
            seals: root.seals,
            ..Root::default()
        }
        .pack(),
        false => 0,
    }
}

fn count(found: &mut Inode, node: &Node) {
    match (node.leaf, found.blocks.get_mut(usize::from(node.level))) {
        (true, Some(blocks)) => *blocks += 1,
        _ => found.tables += 1,
    }
}
