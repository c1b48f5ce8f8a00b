// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the hierarchies of control groups are mounted, of `/proc/self/mountinfo`.

use std::path::PathBuf;

use crate::Root;
use crate::proc::{self, Mount};

/// Mount points of the hierarchies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mounts {
    /// Version 2.
    pub unified: Vec<PathBuf>,
    /// Version 1: memory, CPU time, perf events.
    pub memory: Vec<PathBuf>,
    pub cpu: Option<PathBuf>,
    pub perf: Option<PathBuf>,
}

/// Reads the mount points; the usual ones if the file cannot be read.
pub(super) fn mounts(root: &Root) -> Mounts {
    match proc::own_mounts(root) {
        Ok(all) => hierarchies(all),
        Err(_) => Mounts {
            unified: vec!["/sys/fs/cgroup".into(), "/sys/fs/cgroup/unified".into()],
            memory: vec!["/sys/fs/cgroup/memory".into()],
            cpu: Some("/sys/fs/cgroup/cpuacct".into()),
            perf: Some("/sys/fs/cgroup/perf_event".into()),
        },
    }
}

fn hierarchies(all: Vec<Mount>) -> Mounts {
    let mut mounts = Mounts::default();
    for mount in all {
        match &*mount.kind {
            "cgroup2" => mounts.unified.push(mount.point),
            "cgroup" => {
                if mount.has("cpuacct") {
                    mounts.cpu = Some(mount.point.clone());
                }
                if mount.has("perf_event") {
                    mounts.perf = Some(mount.point.clone());
                }
                if mount.has("memory") {
                    mounts.memory.push(mount.point);
                }
            }
            _ => {}
        }
    }
    mounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_by_type_and_options() {
        let text = "30 1 0:26 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw\n\
            31 30 0:27 / /sys/fs/cgroup/memory rw master:1 shared:5 - cgroup cgroup rw,memory\n\
            32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            34 30 0:30 /\\040memory /srv/not\\040one rw - ext4 /dev/memory rw,memory\n\
            35 30 0:31 / /mnt/my\\040groups\\134x\\012 rw - cgroup2 none rw\n\
            nonsense\n";
        let machine = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(machine.path().join("proc/self")).unwrap();
        std::fs::write(machine.path().join("proc/self/mountinfo"), text).unwrap();
        let mounts = mounts(&Root::at(machine.path()));
        let unified = ["/sys/fs/cgroup/unified", "/mnt/my groups\\x\n"];
        assert_eq!(mounts.unified, unified.map(PathBuf::from));
        assert_eq!(mounts.memory, [PathBuf::from("/sys/fs/cgroup/memory")]);
        assert_eq!(mounts.cpu, Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(mounts.perf, None);
    }
}
