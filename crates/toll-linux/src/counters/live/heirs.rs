// SPDX-License-Identifier: MIT OR Apache-2.0
//! What processes used between their last look and their end.
//!
//! The kernel adds what an ended child used to the process that waited for it. What the child had
//! used when it was last seen is in the child's own counters already, so only the rest is given to
//! the parent. A child that started and ended between two looks is given to it whole.

use std::collections::BTreeMap;

use super::process::Process;
use crate::counters::used::Used;

type ById = BTreeMap<u32, Process>;

/// Updates what the processes of a look inherited since the look before.
pub(super) fn inherit(before: &ById, now: &mut ById) {
    let seen = seen_children(before, now);
    for process in now.values_mut() {
        let earlier = before.get(&process.pid).filter(|it| it.is(process));
        let grown = process
            .children
            .minus(earlier.map_or(Used::default(), |it| it.children));
        let seen = seen.get(&process.pid).copied().unwrap_or_default();
        let counted = seen.plus(process.expected);
        process.inherited = process.inherited.plus(grown.minus(counted));
        // The parent may have been looked at before it waited.
        process.expected = seen.minus(grown);
    }
}

/// What ended processes had used when they were last seen, by the process that inherits from them.
fn seen_children(before: &ById, now: &ById) -> BTreeMap<u32, Used> {
    let mut seen: BTreeMap<u32, Used> = BTreeMap::new();
    for ended in before.values().filter(|it| !lives(it, now)) {
        if let Some(heir) = heir(ended, before, now) {
            let sum = seen.entry(heir).or_default();
            *sum = sum.plus(ended.own).plus(ended.children);
        }
    }
    seen
}

fn lives(process: &Process, now: &ById) -> bool {
    now.get(&process.pid).is_some_and(|it| it.is(process))
}

/// The nearest ancestor that lives.
fn heir(ended: &Process, before: &ById, now: &ById) -> Option<u32> {
    let mut parent = ended.parent;
    // A cycle is possible only with ids that were reused.
    for _ in 0..before.len() {
        match before.get(&parent) {
            Some(ancestor) if lives(ancestor, now) => return Some(parent),
            Some(ancestor) => parent = ancestor.parent,
            None => return now.contains_key(&parent).then_some(parent),
        }
    }
    None
}

#[cfg(test)]
mod tests;
