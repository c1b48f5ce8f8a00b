// SPDX-License-Identifier: MIT OR Apache-2.0
//! The control groups of the processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toll_model::losses::Snapshot;

use super::process::Process;
use crate::Root;
use crate::counters::Cgroup;

/// A group that was found.
#[derive(Debug)]
struct Group {
    cgroup: Cgroup,
    /// Its counters when a process of it last ran.
    last: Arc<Snapshot>,
}

/// The groups at the last look; `None` for one without counters here.
#[derive(Debug, Default)]
pub(super) struct Groups {
    known: BTreeMap<Arc<str>, Option<Group>>,
}

impl Groups {
    /// Reads the groups in which a process ran.
    pub(super) fn look<'a>(&mut self, root: &Root, processes: impl Iterator<Item = &'a Process>) {
        let mut active: BTreeMap<Arc<str>, bool> = BTreeMap::new();
        for process in processes {
            if let Some(path) = &process.cgroup {
                *active.entry(path.clone()).or_default() |= process.is_active;
            }
        }
        self.known.retain(|path, _| active.contains_key(path));
        for (path, is_active) in active {
            match self.known.get_mut(&path) {
                None => {
                    let group = Group::find(root, &path);
                    self.known.insert(path, group);
                }
                Some(Some(group)) if is_active => group.last = Arc::new(group.cgroup.read(root)),
                Some(_) => {}
            }
        }
    }

    pub(super) fn snapshots(&self) -> BTreeMap<Arc<str>, Arc<Snapshot>> {
        let found = self.known.iter();
        let last = |(path, group): (&Arc<str>, &Option<Group>)| {
            Some((path.clone(), group.as_ref()?.last.clone()))
        };
        found.filter_map(last).collect()
    }
}

impl Group {
    fn find(root: &Root, path: &str) -> Option<Group> {
        let cgroup = Cgroup::find(root, Path::new(path)).ok()?;
        cgroup.counts_memory(root).then(|| Group {
            last: Arc::new(cgroup.read(root)),
            cgroup,
        })
    }
}
