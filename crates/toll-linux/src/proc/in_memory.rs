// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which files lie in memory, so that huge pages can hold them: those on tmpfs, and those of the
//! kernel's own mount, which no list of mounts has.

use std::path::{Path, PathBuf};

use super::Mapping;
use super::mountinfo::{Mount, mounts};
use crate::Root;

/// Names on the kernel's own mount: memfd, shared anonymous memory, System V segments.
pub(crate) const OWN: [&str; 3] = ["/memfd:", "/dev/zero (deleted)", "/SYSV"];

/// The mounts of a process that hold files in memory.
#[derive(Debug, Clone)]
pub struct InMemory {
    /// Mount points, and whether each is a tmpfs; the last of equal ones counts.
    points: Vec<(PathBuf, bool)>,
}

/// Without a list of mounts: POSIX shared memory is always on tmpfs.
impl Default for InMemory {
    fn default() -> InMemory {
        InMemory {
            points: vec![("/dev/shm".into(), true)],
        }
    }
}

impl InMemory {
    /// Reads the mounts of a process; without them, only names tell.
    pub fn read(root: &Root, pid: u32) -> InMemory {
        InMemory::of(&mounts(root, pid).unwrap_or_default())
    }

    fn of(mounts: &[Mount]) -> InMemory {
        let point = |mount: &Mount| (mount.point.clone(), mount.kind == "tmpfs");
        InMemory {
            points: mounts.iter().map(point).collect(),
        }
    }

    /// Whether the file with this name, as maps prints it, lies in memory.
    pub fn holds(&self, name: &str) -> bool {
        if OWN.iter().any(|own| name.starts_with(own)) {
            return true;
        }
        let path = Path::new(name.strip_suffix(" (deleted)").unwrap_or(name));
        let above = self.points.iter().filter(|(at, _)| path.starts_with(at));
        above
            .max_by_key(|(at, _)| at.components().count())
            .is_some_and(|(_, is_tmpfs)| *is_tmpfs)
    }

    /// Whether a mapping is shared and writable memory.
    pub fn is_shared(&self, mapping: &Mapping) -> bool {
        let named = mapping.name.starts_with("[anon_shmem:");
        mapping.shared && mapping.write && (named || self.holds(&mapping.name))
    }
}

#[cfg(test)]
mod tests;
