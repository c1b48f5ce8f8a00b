// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mappings of a process.

use std::collections::BTreeMap;

/// How a mapping belongs to a site.
#[derive(Debug, Clone)]
pub struct Vma {
    pub end: u64,
    pub huge: bool,
    pub is: Is,
}

/// What is mapped.
#[derive(Debug, Clone)]
pub enum Is {
    File {
        path: String,
        offset: u64,
    },
    Heap,
    Stack,
    Named(String),
    /// Unnamed; `base` is its offset among all unnamed mappings.
    Anonymous {
        base: u64,
    },
}

/// The mappings of one process, by start.
pub type Space = BTreeMap<u64, Vma>;

/// Removes `start..end` from the existing mappings.
pub fn carve(space: &mut Space, start: u64, end: u64) {
    let overlapping: Vec<u64> = space
        .range(..end)
        .rev()
        .take_while(|(_, v)| v.end > start)
        .map(|(&s, _)| s)
        .collect();
    for old in overlapping {
        let Some(vma) = space.remove(&old) else {
            continue;
        };
        if vma.end > end {
            let is = moved(&vma.is, end - old);
            space.insert(end, Vma { is, ..vma.clone() });
        }
        if old < start {
            space.insert(old, Vma { end: start, ..vma });
        }
    }
}

/// The rest of a mapping after its first `by` bytes.
fn moved(is: &Is, by: u64) -> Is {
    match is {
        Is::File { path, offset } => Is::File {
            path: path.clone(),
            offset: offset.saturating_add(by),
        },
        Is::Anonymous { base } => Is::Anonymous { base: base + by },
        other => other.clone(),
    }
}
