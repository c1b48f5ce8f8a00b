// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renames that are done but not completed.

use std::collections::{BTreeMap, HashSet};

use super::Reader;
use super::names::Raw;
use crate::fault::Fault;
use crate::finding::Fix;
use crate::medium::Source;

/// The inode that a slot leads to after a pending rename.
pub(super) struct Renamed {
    slot: u64,
    inode: u64,
}

impl<S: Source> Reader<'_, S> {
    /// What slots lead to after their pending renames.
    pub(super) fn pending(
        &mut self,
        raw: &BTreeMap<u64, Raw>,
        fault: Option<Fault>,
    ) -> Vec<Renamed> {
        let mut renamed: Vec<Renamed> = Vec::new();
        let mut froms = HashSet::new();
        for (slot, target) in raw {
            if !is_pending(target, fault) {
                continue;
            }
            match partner(*slot, target, raw) {
                Some(found) if froms.insert(found.slot) => {
                    self.complete(target, raw.get(&found.slot), found.inode);
                    renamed.push(found);
                }
                _ => {
                    let what = "a pending rename has no other side";
                    self.findings
                        .damage(target.at, Some(target.target.inode), what, None);
                }
            }
        }
        renamed
    }

    fn complete(&mut self, target: &Raw, from: Option<&Raw>, other: u64) {
        let fix = match from {
            Some(from) => Fix::Complete {
                from: from.at,
                other,
                target: target.at,
                inode: target.target.inode,
            },
            None => Fix::Set {
                offset: target.at,
                payload: target.target.inode,
            },
        };
        let inode = Some(target.target.inode);
        self.findings
            .leftover(target.at, inode, "a rename is not completed", fix);
    }
}

/// Applies renames to what the slots have.
pub(super) fn apply(raw: &mut BTreeMap<u64, Raw>, renamed: &[Renamed]) {
    for Renamed { slot, inode } in renamed {
        if *inode == 0 {
            raw.remove(slot);
        } else if let Some(raw) = raw.get_mut(slot) {
            raw.target.inode = *inode;
        }
    }
}

fn is_pending(target: &Raw, fault: Option<Fault>) -> bool {
    let stale = fault == Some(Fault::StaleFromObeyed) && target.from.is_some_and(|from| from != 0);
    target.target.pending || stale
}

/// The other side of a pending rename, and the inode that it gets; `None` if that makes no sense.
fn partner(slot: u64, target: &Raw, raw: &BTreeMap<u64, Raw>) -> Option<Renamed> {
    let from = target.from?.checked_sub(1)?;
    let other = target.other?;
    let moved = target.target.inode;
    let fits = match raw.get(&from) {
        Some(from) => !from.target.pending && [moved, other].contains(&from.target.inode),
        None => other == 0,
    };
    let is_valid = from != slot && moved != 0 && other != moved && fits;
    is_valid.then_some(Renamed {
        slot: from,
        inode: other,
    })
}
