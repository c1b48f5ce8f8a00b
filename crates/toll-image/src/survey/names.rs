// SPDX-License-Identifier: MIT OR Apache-2.0
//! The slots of names, pending renames, and the tree of directories.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use super::pending::apply;
use super::{Inode, Name, Reader};
use crate::fault::Fault;
use crate::finding::Fix;
use crate::layout::{PAGE, Target, inode, name};
use crate::medium::Source;
use crate::word::{crc32c, decode, number_at};

/// A slot as it is on the medium.
pub(super) struct Raw {
    pub(super) at: u64,
    pub(super) target: Target,
    pub(super) parent: Option<u64>,
    pub(super) from: Option<u64>,
    pub(super) other: Option<u64>,
    pub(super) text: Option<Vec<u8>>,
}

type Inodes = BTreeMap<u64, Inode>;

impl<S: Source> Reader<'_, S> {
    pub(super) fn raw_names(
        &mut self,
        pages: &BTreeMap<u64, u64>,
    ) -> io::Result<BTreeMap<u64, Raw>> {
        let mut names = BTreeMap::new();
        for (index, page) in pages {
            let bytes = self.source.page(*page)?;
            for (n, bytes) in bytes.chunks_exact(name::SLOT as usize).enumerate() {
                let at = page * PAGE + n as u64 * name::SLOT;
                let raw = self.raw_name(bytes, at);
                names.extend(raw.map(|raw| (index * name::PER_PAGE + n as u64, raw)));
            }
        }
        Ok(names)
    }

    fn raw_name(&mut self, bytes: &[u8], at: u64) -> Option<Raw> {
        let word = |field: u64| decode(at + field, number_at(bytes, field as usize));
        let target = word(name::INODE).and_then(Target::unpack);
        let Some(target) = target else {
            let what = "the inode of a name is damaged";
            self.findings.damage(at, None, what, None);
            return None;
        };
        if target.pack() == 0 {
            return None;
        }
        Some(Raw {
            at,
            target,
            parent: word(name::PARENT),
            from: word(name::FROM),
            other: word(name::OTHER),
            text: text(bytes, word(name::LENGTH)),
        })
    }

    /// The valid names, after pending renames.
    pub(super) fn names(
        &mut self,
        mut raw: BTreeMap<u64, Raw>,
        inodes: &Inodes,
        fault: Option<Fault>,
    ) -> BTreeMap<u64, Name> {
        let renamed = self.pending(&raw, fault);
        if fault != Some(Fault::DropsBeforeCompletion) {
            apply(&mut raw, &renamed);
        }
        let mut seen = HashSet::new();
        let mut names = BTreeMap::new();
        // With damaged inodes, a name that leads nowhere may have led to one of them.
        let drops_dangling = !self.findings.is_damaged();
        for (slot, raw) in raw {
            let found = self.name(&raw, inodes, &mut seen, drops_dangling);
            names.extend(found.map(|found| (slot, found)));
        }
        self.directories(&mut names, inodes);
        names
    }

    /// A name by itself.
    fn name(
        &mut self,
        raw: &Raw,
        inodes: &Inodes,
        seen: &mut HashSet<(u64, Vec<u8>)>,
        drops_dangling: bool,
    ) -> Option<Name> {
        let number = raw.target.inode;
        let target = inodes.get(&number);
        let is_directory = |number| inodes.get(&number).is_some_and(Inode::is_directory);
        let what = match (&raw.text, raw.parent) {
            (None, _) => "a name is damaged",
            (_, None) => "the directory of a name is damaged",
            _ if number == inode::FIRST => "a name leads to the root directory",
            _ if target.is_none() => "a name leads to no inode",
            (_, Some(parent)) if !is_directory(parent) => "the directory of a name is missing",
            (Some(text), Some(parent)) if !seen.insert((parent, text.clone())) => {
                "a directory has the same name twice"
            }
            (Some(text), Some(parent)) => {
                let text = text.clone();
                return Some(Name {
                    parent,
                    text,
                    inode: number,
                });
            }
        };
        let is_droppable = |target: &Inode| !target.keep && !target.is_directory();
        let drops = target.map_or(drops_dangling, is_droppable);
        let fix = drops.then_some(Fix::Set {
            offset: raw.at,
            payload: 0,
        });
        self.findings.damage(raw.at, Some(number), what, fix);
        None
    }

    /// Drops names of directories that have several, or that do not hang off the root.
    fn directories(&mut self, names: &mut BTreeMap<u64, Name>, inodes: &Inodes) {
        let mut parents = HashMap::new();
        names.retain(|_, name| {
            let Some(target) = inodes.get(&name.inode).filter(|it| it.is_directory()) else {
                return true;
            };
            let first = parents.insert(name.inode, name.parent).is_none();
            if !first {
                let what = "a directory has two names";
                self.findings
                    .damage(target.at, Some(name.inode), what, None);
            }
            first
        });
        let hanging = hanging(&parents);
        names.retain(|_, name| {
            let hangs = hanging.contains(&name.parent);
            if !hangs {
                let at = inodes.get(&name.inode).map_or(0, |target| target.at);
                let what = "a name does not hang off the root directory";
                self.findings.damage(at, Some(name.inode), what, None);
            }
            hangs
        });
    }

    pub(super) fn count_links(&mut self, names: &BTreeMap<u64, Name>, inodes: &mut Inodes) {
        for name in names.values() {
            if let Some(target) = inodes.get_mut(&name.inode) {
                target.links += 1;
            }
        }
        let is_damaged = self.findings.is_damaged();
        for (number, found) in inodes
            .iter()
            .filter(|it| it.1.links == 0 && *it.0 != inode::FIRST)
        {
            self.unnamed(*number, found, is_damaged);
        }
    }

    /// An inode without a name. Where names are damaged, it may have had one.
    fn unnamed(&mut self, number: u64, found: &Inode, is_damaged: bool) {
        let offset = found.at + inode::MODE;
        let fix = Fix::Set { offset, payload: 0 };
        let what = "an inode has no name";
        match is_damaged {
            false => self.findings.leftover(offset, Some(number), what, fix),
            true => {
                let drops = !found.keep && !found.is_directory();
                self.findings
                    .damage(offset, Some(number), what, drops.then_some(fix));
            }
        }
    }
}

/// The text of a name, if it is one.
fn text(bytes: &[u8], length: Option<u64>) -> Option<Vec<u8>> {
    let payload = length?;
    let (length, sum) = (payload as usize & 0xff, (payload >> 8) as u32);
    let begin = name::TEXT as usize;
    let text = bytes.get(begin..begin + length)?;
    let is_name = payload >> 40 == 0 && crc32c(text) == sum && is_name(text);
    is_name.then(|| text.to_vec())
}

/// Whether a directory can have such a name.
pub fn is_name(text: &[u8]) -> bool {
    (1..=name::LONGEST).contains(&text.len())
        && !text.iter().any(|byte| matches!(byte, b'/' | 0))
        && text != b"."
        && text != b".."
}

/// The directories from which the root can be reached.
fn hanging(parents: &HashMap<u64, u64>) -> HashSet<u64> {
    let mut hanging = HashSet::from([inode::FIRST]);
    let mut lost = HashSet::new();
    for start in parents.keys() {
        let mut path = Vec::new();
        let mut at = *start;
        let mut on_path = HashSet::new();
        while !hanging.contains(&at) && !lost.contains(&at) && on_path.insert(at) {
            path.push(at);
            match parents.get(&at) {
                Some(parent) => at = *parent,
                None => break,
            }
        }
        match hanging.contains(&at) {
            true => hanging.extend(path),
            false => lost.extend(path),
        }
    }
    hanging
}
