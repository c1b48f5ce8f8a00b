// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/PID/cgroup`: the control groups of a process.

use std::io;

use crate::Root;

/// Returns the group that counts a process's memory, as a path below the mount of its hierarchy:
/// that of version 1's memory controller, or else that of version 2. `None` if it is in neither.
///
/// # Errors
/// No such process, or a kernel without control groups.
pub fn cgroup(root: &Root, pid: u32) -> io::Result<Option<String>> {
    let text = root.read(format!("/proc/{pid}/cgroup"))?;
    let group = |line| {
        let mut fields = str::splitn(line, 3, ':').skip(1);
        Some((fields.next()?, fields.next()?))
    };
    let groups: Vec<(&str, &str)> = text.lines().filter_map(group).collect();
    let counts_memory = |controllers: &str| controllers.split(',').any(|it| it == "memory");
    let of_memory = groups.iter().find(|it| counts_memory(it.0));
    let found = of_memory.or_else(|| groups.iter().find(|it| it.0.is_empty()));
    Ok(found.map(|(_, path)| (*path).to_owned()))
}

#[cfg(test)]
mod tests {
    use toll_testkit::Directory;

    use super::*;

    fn of(text: &str) -> Option<String> {
        let machine = Directory::with(&[("proc/7/cgroup", text)]);
        cgroup(&Root::at(machine.as_path()), 7).unwrap()
    }

    #[test]
    fn the_hierarchy_of_memory_is_preferred() {
        let both = "9:name=systemd:/a\n4:hugetlb,memory:/b:c\n0::/d\n";
        assert_eq!(of(both).unwrap(), "/b:c");
        assert_eq!(
            of("1:cpu:/a\n0::/user.slice/x y\n").unwrap(),
            "/user.slice/x y"
        );
        assert_eq!(of("1:cpu,cpuacct:/a\nnonsense\n"), None);
    }

    #[test]
    fn a_process_that_ended_is_an_error() {
        let machine = Directory::empty();
        assert!(cgroup(&Root::at(machine.as_path()), 7).is_err());
    }
}
