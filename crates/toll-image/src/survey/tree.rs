// SPDX-License-Identifier: MIT OR Apache-2.0
//! The nodes of a tree: tables and blocks.

use std::collections::BTreeMap;
use std::io;

use super::Reader;
use crate::finding::Fix;
use crate::layout::{ENTRIES, Entry, LEAF_LEVEL, PAGE, Root, TOP_LEVEL, pages_of};
use crate::medium::Source;
use crate::word::{decode, number_at};

/// A table or a block, as the word that leads to it describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Number of the first page of the tree that it covers.
    pub index: u64,
    pub level: u8,
    pub leaf: bool,
    pub page: u64,
    /// Place of the word.
    pub word: u64,
}

impl Node {
    /// Pages of the range that the node itself takes.
    pub fn count(&self) -> u64 {
        match self.leaf {
            true => pages_of(self.level),
            false => 1,
        }
    }
}

/// A word that leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bad {
    pub word: u64,
    pub what: &'static str,
}

/// Whether the entries of a table are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Enter,
    Skip,
}

/// Visits the nodes of a tree in order, and each word that is not valid.
pub fn walk<S: Source>(
    source: &S,
    at: u64,
    root: Root,
    visit: &mut impl FnMut(Result<Node, Bad>) -> Step,
) -> io::Result<()> {
    if root.page == 0 {
        return Ok(());
    }
    let node = Node {
        index: 0,
        level: root.level,
        leaf: root.leaf,
        page: root.page,
        word: at,
    };
    match root.level {
        0..=TOP_LEVEL => step(source, node, visit),
        _ => {
            visit(Err(Bad {
                word: at,
                what: "the level of a root is too large",
            }));
            Ok(())
        }
    }
}

fn step<S: Source>(
    source: &S,
    node: Node,
    visit: &mut impl FnMut(Result<Node, Bad>) -> Step,
) -> io::Result<()> {
    if let Err(what) = check(&node, source.pages()) {
        visit(Err(Bad {
            word: node.word,
            what,
        }));
        return Ok(());
    }
    match visit(Ok(node)) {
        Step::Enter if !node.leaf => entries(source, node, visit),
        _ => Ok(()),
    }
}

fn entries<S: Source>(
    source: &S,
    table: Node,
    visit: &mut impl FnMut(Result<Node, Bad>) -> Step,
) -> io::Result<()> {
    let page = source.page(table.page)?;
    for slot in 0..ENTRIES {
        let word = number_at(&page, slot as usize * 8);
        if word != 0 {
            entry(source, table, slot, word, visit)?;
        }
    }
    Ok(())
}

fn entry<S: Source>(
    source: &S,
    table: Node,
    slot: u64,
    value: u64,
    visit: &mut impl FnMut(Result<Node, Bad>) -> Step,
) -> io::Result<()> {
    let word = table.page * PAGE + slot * 8;
    let level = table.level - 1;
    let entry = decode(word, value).and_then(Entry::unpack);
    let Some(Entry { page, leaf }) = entry else {
        visit(Err(Bad {
            word,
            what: "an entry of a table is damaged",
        }));
        return Ok(());
    };
    let index = table.index + slot * pages_of(level);
    step(
        source,
        Node {
            index,
            level,
            leaf,
            page,
            word,
        },
        visit,
    )
}

fn check(node: &Node, pages: u64) -> Result<(), &'static str> {
    let is_inside = node
        .page
        .checked_add(node.count())
        .is_some_and(|end| end <= pages);
    match node {
        Node {
            leaf: false,
            level: 0,
            ..
        } => Err("a table has the level of a page"),
        Node {
            leaf: true, level, ..
        } if *level > LEAF_LEVEL => Err("a block is too large"),
        Node { page, .. } if *page < 2 => Err("an entry leads to a superblock"),
        _ if !is_inside => Err("an entry leads out of the range"),
        Node { leaf: true, .. } if node.page % node.count() != 0 => Err("a block is not aligned"),
        _ => Ok(()),
    }
}

impl<S: Source> Reader<'_, S> {
    /// The pages of a tree of slots, by index.
    pub(super) fn metadata(&mut self, at: u64) -> io::Result<BTreeMap<u64, u64>> {
        let mut pages = BTreeMap::new();
        let (owned, findings) = (&mut self.owned, &mut self.findings);
        let Some(payload) = crate::medium::payload_at(self.source, at)? else {
            findings.damage(at, None, "the root of the inodes or names is damaged", None);
            return Ok(pages);
        };
        let limit = owned.pages();
        walk(self.source, at, Root::unpack(payload), &mut |node| {
            let result = node.and_then(|node| match node {
                Node {
                    leaf: true,
                    level: 1..,
                    word,
                    ..
                } => Err(Bad {
                    word,
                    what: "inodes or names are in a block",
                }),
                Node { page, word, .. } => take(owned, page, 1, word, limit).map(|()| node),
            });
            match result {
                Ok(node) if node.leaf => drop(pages.insert(node.index, node.page)),
                Ok(_) => {}
                Err(bad) => {
                    findings.damage(bad.word, None, bad.what, None);
                    return Step::Skip;
                }
            }
            Step::Enter
        })?;
        Ok(pages)
    }

    /// Takes a page that one word leads to; whether it could be taken.
    pub(super) fn take_page(&mut self, page: u64, word: u64, inode: u64, fix: Option<Fix>) -> bool {
        let limit = self.owned.pages();
        let taken = take(&mut self.owned, page, 1, word, limit);
        if let Err(bad) = &taken {
            self.findings.damage(bad.word, Some(inode), bad.what, fix);
        }
        taken.is_ok()
    }
}

/// Takes the pages of a node within the recorded size.
pub(super) fn take(
    owned: &mut crate::owned::Owned,
    page: u64,
    count: u64,
    word: u64,
    limit: u64,
) -> Result<(), Bad> {
    if page < 2 || page.checked_add(count).is_none_or(|end| end > limit) {
        return Err(Bad {
            word,
            what: "an entry leads out of the range",
        });
    }
    let overlap = |_| Bad {
        word,
        what: "a page belongs to something else already",
    };
    owned.take(page, count).map_err(overlap)
}
