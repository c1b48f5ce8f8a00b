// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the hierarchies of control groups are mounted, of `/proc/self/mountinfo`.

use std::path::PathBuf;

use super::{Mount, own_mounts};
use crate::Root;

/// Mounts of the hierarchies. A container sees a part of one, and a mount of the host in another
/// cgroup namespace starts above the groups that /proc/PID/cgroup names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Hierarchies {
    /// Version 2.
    pub unified: Vec<Mount>,
    /// Version 1: memory, CPU time, perf events.
    pub memory: Vec<Mount>,
    pub cpu: Option<PathBuf>,
    pub perf: Option<PathBuf>,
}

/// Reads the mounts; the usual ones if the file cannot be read.
pub(crate) fn hierarchies(root: &Root) -> Hierarchies {
    match own_mounts(root) {
        Ok(all) => found(all),
        Err(_) => Hierarchies {
            unified: vec![whole("/sys/fs/cgroup"), whole("/sys/fs/cgroup/unified")],
            memory: vec![whole("/sys/fs/cgroup/memory")],
            cpu: Some("/sys/fs/cgroup/cpuacct".into()),
            perf: Some("/sys/fs/cgroup/perf_event".into()),
        },
    }
}

/// A mount of a whole hierarchy.
fn whole(point: &str) -> Mount {
    Mount {
        device: (0, 0),
        root: "/".into(),
        point: point.into(),
        kind: String::new(),
        options: String::new(),
    }
}

fn found(all: Vec<Mount>) -> Hierarchies {
    let mut hierarchies = Hierarchies::default();
    for mount in all {
        match &*mount.kind {
            "cgroup2" => hierarchies.unified.push(mount),
            "cgroup" => {
                if mount.has("cpuacct") {
                    hierarchies.cpu = Some(mount.point.clone());
                }
                if mount.has("perf_event") {
                    hierarchies.perf = Some(mount.point.clone());
                }
                if mount.has("memory") {
                    hierarchies.memory.push(mount);
                }
            }
            _ => {}
        }
    }
    hierarchies
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toll_testkit::Directory;

    use super::*;

    fn of(text: &str) -> Hierarchies {
        let machine = Directory::with(&[("proc/self/mountinfo", text)]);
        hierarchies(&Root::at(machine.as_path()))
    }

    fn points(mounts: &[Mount]) -> Vec<&Path> {
        mounts.iter().map(|mount| &*mount.point).collect()
    }

    #[test]
    fn hierarchies_are_found_by_type_and_options() {
        let text = "30 1 0:26 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw\n\
            31 30 0:27 / /sys/fs/cgroup/memory rw master:1 shared:5 - cgroup cgroup rw,memory\n\
            32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
            33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
            34 30 0:30 /\\040memory /srv/not\\040one rw - ext4 /dev/memory rw,memory\n\
            35 30 0:31 / /mnt/my\\040groups\\134x\\012 rw - cgroup2 none rw\n\
            nonsense\n";
        let found = of(text);
        let unified = ["/sys/fs/cgroup/unified", "/mnt/my groups\\x\n"];
        assert_eq!(points(&found.unified), unified.map(Path::new));
        assert_eq!(points(&found.memory), [Path::new("/sys/fs/cgroup/memory")]);
        assert_eq!(found.cpu, Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(found.perf, None);
    }

    #[test]
    fn a_mount_shows_the_groups_below_its_root() {
        let shows = |root: &str, path: &str| {
            let found = of(&format!("33 30 0:29 {root} /cg rw - cgroup2 cgroup2 rw\n"));
            let shown = found.unified[0].shows(Path::new(path));
            shown.map(|path| path.display().to_string())
        };
        let some = |path: &str| Some(path.to_owned());
        assert_eq!(shows("/", "/pod/a"), some("/cg/pod/a"));
        assert_eq!(shows("/", "/"), some("/cg"));
        assert_eq!(shows("/docker/1f", "/docker/1f"), some("/cg"));
        assert_eq!(shows("/docker/1f", "/docker/1f/x"), some("/cg/x"));
        assert_eq!(shows("/docker/1f", "/docker/1fa"), None);
        // The host's mount in a container with a cgroup namespace: the names between are unknown.
        assert_eq!(shows("/../..", "/"), None);
        assert_eq!(shows("/../..", "/../../pod"), some("/cg/pod"));
        assert_eq!(shows("/../..", "/../pod"), None);
        assert_eq!(shows("/", "/../pod"), None);
    }
}
