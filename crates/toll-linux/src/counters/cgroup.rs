// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counters of a control group, version 2 or 1.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use toll_model::losses::{Missing, Scope, Snapshot};

use super::vmstat::{numbers, set_minor};
use super::{Refusal, pressure, ticks_to_ns};
use crate::Root;
use crate::bpf::{Of, Probes};
use crate::proc::{Hierarchies, Mount, hierarchies};

/// A control group that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// Its directory, below the root.
    pub(super) directory: PathBuf,
    /// Whether it belongs to the unified hierarchy.
    pub(super) unified: bool,
    /// Version 1: the directory of the same group in the hierarchy of CPU time.
    cpu: PathBuf,
    /// The directory of the same group in the hierarchy of perf events.
    pub(super) perf: PathBuf,
}

/// Counter, name in memory.stat of version 2, and in that of version 1 (empty: it has none).
#[rustfmt::skip]
const EVENTS: [(&str, &str, &str); 9] = [
    ("page_faults", "pgfault", "total_pgfault"),
    ("page_faults_major", "pgmajfault", "total_pgmajfault"),
    ("thp_fault_alloc", "thp_fault_alloc", ""),
    ("thp_collapses", "thp_collapse_alloc", ""),
    ("thp_swap_outs", "thp_swpout", ""),
    ("swap_ins", "pswpin", ""),
    ("direct_scanned_pages", "pgscan_direct", ""),
    ("direct_reclaimed_pages", "pgsteal_direct", ""),
    ("mapped_huge_anon", "anon_thp", "total_rss_huge"),
];
const LEVELS: [(&str, &str); 3] = [
    ("mapped_huge_shmem", "shmem_thp"),
    ("mapped_huge_file", "file_thp"),
    ("page_tables", "pagetables"),
];

impl Cgroup {
    /// Finds a group by its directory, or by its name below the mount of its hierarchy.
    ///
    /// # Errors
    /// There is no such group, or the directory is not one.
    pub fn find(root: &Root, name: &Path) -> Result<Cgroup, Refusal> {
        let mounts = hierarchies(root);
        let unified = mounts.unified.iter().map(|mount| (mount, true));
        let both = unified.chain(mounts.memory.iter().map(|mount| (mount, false)));
        let mut candidates: Vec<(PathBuf, bool)> = both
            .filter_map(|(mount, unified)| Some((below(mount, name)?, unified)))
            .collect();
        let has = |directory: &Path, file: &str| root.path(directory.join(file)).exists();
        candidates.retain(|(directory, _)| has(directory, "cgroup.procs"));
        // The unified hierarchy may be mounted without its memory controller.
        let with_memory = candidates.iter().find(|it| has(&it.0, "memory.stat"));
        let Some((directory, unified)) = with_memory.or(candidates.first()) else {
            return Err(refusal(root, name, &mounts));
        };
        let relative = relative(directory, &mounts);
        let in_hierarchy = |mount: &Option<PathBuf>| match mount {
            Some(mount) if !unified => mount.join(&relative),
            _ => directory.clone(),
        };
        Ok(Cgroup {
            cpu: in_hierarchy(&mounts.cpu),
            perf: in_hierarchy(&mounts.perf),
            directory: directory.clone(),
            unified: *unified,
        })
    }

    /// Whether the group was removed.
    pub(super) fn is_gone(&self, root: &Root) -> bool {
        !root.path(self.directory.join("cgroup.procs")).exists()
    }

    /// Starts BPF programs for its tasks.
    pub(super) fn probes(&self, root: &Root) -> Result<Probes, Missing> {
        match self.unified {
            true => Probes::open(root, &Of::Cgroup(root.path(&self.directory))),
            false => Err(Missing::new(
                "BPF: knows the tasks of a cgroup by version 2 alone",
                "cgroup version 2",
            )),
        }
    }

    /// Whether the memory controller counts for it.
    pub(super) fn counts_memory(&self, root: &Root) -> bool {
        root.path(self.directory.join("memory.stat")).exists()
    }

    pub(super) fn read(&self, root: &Root) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let text = root.read(self.directory.join("memory.stat"));
        let text = text.map_err(|_| self.no_controller());
        let found = text.as_deref().map(numbers);
        let found = found.map_err(Clone::clone);
        for (name, v2, v1) in EVENTS {
            let key = if self.unified { v2 } else { v1 };
            snapshot.set(Scope::Cgroup, name, self.number(&found, key));
        }
        for (name, v2) in LEVELS {
            let key = if self.unified { v2 } else { "" };
            snapshot.set(Scope::Cgroup, name, self.number(&found, key));
        }
        set_minor(Scope::Cgroup, &mut snapshot);
        if let Err(missing) = &found {
            snapshot.miss(Scope::Cgroup, &["page_faults_minor"], missing);
        }
        self.cpu(root, &mut snapshot);
        self.pressure(root, &mut snapshot);
        snapshot
    }

    fn number(
        &self,
        found: &Result<HashMap<&str, u64>, Missing>,
        key: &str,
    ) -> Result<u64, Missing> {
        let found = found.as_ref().map_err(Clone::clone)?;
        found.get(key).copied().ok_or_else(|| match self.unified {
            true => Missing::new(
                format!("memory.stat of this kernel has no {key}"),
                "a newer kernel",
            ),
            false => Missing::new("version 1 of cgroups does not count it", "cgroup version 2"),
        })
    }

    fn no_controller(&self) -> Missing {
        Missing::new(
            "the memory controller is off for this cgroup",
            "`echo +memory > cgroup.subtree_control` in the directory above it",
        )
    }

    fn cpu(&self, root: &Root, snapshot: &mut Snapshot) {
        let (file, user, system) = match self.unified {
            true => ("cpu.stat", "user_usec", "system_usec"),
            false => ("cpuacct.stat", "user", "system"),
        };
        let text = root.read(self.cpu.join(file)).unwrap_or_default();
        let found = numbers(&text);
        let missing = Missing::new(
            format!("{file} of this cgroup cannot be read"),
            "the hierarchy of CPU time with the same group (cgroup version 2 has it)",
        );
        for (name, key) in [("cpu_user", user), ("cpu_system", system)] {
            let ns = found.get(key).map(|number| match self.unified {
                true => number.saturating_mul(1_000),
                false => ticks_to_ns(*number),
            });
            snapshot.set(Scope::Cgroup, name, ns.ok_or_else(|| missing.clone()));
        }
    }

    fn pressure(&self, root: &Root, snapshot: &mut Snapshot) {
        if self.unified {
            let path = self.directory.join("memory.pressure");
            pressure::read(root, Scope::Cgroup, &path, snapshot);
        } else {
            let missing = Missing::new("version 1 of cgroups has no pressure", "cgroup version 2");
            snapshot.miss(Scope::Cgroup, &["pressure_some", "pressure_full"], &missing);
        }
    }
}

/// The directory of a group: the name is one below the mount already, or a path as /proc/PID/cgroup
/// has it, or relative to the mount. `None`: this mount does not show it.
fn below(mount: &Mount, name: &Path) -> Option<PathBuf> {
    match (name.starts_with(&mount.point), name.is_absolute()) {
        (true, _) => Some(name.to_owned()),
        (false, true) => mount.shows(name),
        (false, false) => Some(mount.point.join(name)),
    }
}

/// The part of a group's directory behind the mount that it belongs to: the longest.
fn relative(directory: &Path, mounts: &Hierarchies) -> PathBuf {
    let all = mounts.unified.iter().chain(&mounts.memory);
    all.filter_map(|mount| directory.strip_prefix(&mount.point).ok())
        .min_by_key(|rest| rest.as_os_str().len())
        .map_or_else(PathBuf::new, Path::to_owned)
}

fn refusal(root: &Root, name: &Path, mounts: &Hierarchies) -> Refusal {
    let shown = name.display().to_string().escape_debug().to_string();
    if fs::metadata(root.path(name)).is_ok() {
        return Refusal(format!("{shown}: is not a cgroup (it has no cgroup.procs)"));
    }
    let all = mounts.unified.iter().chain(&mounts.memory);
    let all: Vec<String> = all.map(|mount| mount.point.display().to_string()).collect();
    let places = match all.is_empty() {
        true => "no cgroup hierarchy with memory is mounted".to_owned(),
        false => format!("looked below {}", all.join(" and ")),
    };
    Refusal(format!("{shown}: no such cgroup ({places})"))
}
