// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of the machine: total, limits, and fragmentation. Sizes are bytes.

use std::io;
use std::path::{Path, PathBuf};

use crate::Root;
use crate::proc::{Mount, hierarchies};

/// The fields of `/proc/meminfo` that plans depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meminfo {
    pub total: u64,
    pub free: u64,
    pub available: u64,
    pub swap_total: u64,
    pub anon_huge: u64,
}

/// Reads `/proc/meminfo`.
///
/// # Errors
/// The file cannot be read.
pub fn meminfo(root: &Root) -> io::Result<Meminfo> {
    let mut info = Meminfo::default();
    let text = root.read("/proc/meminfo")?;
    for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
        let place = match key {
            "MemTotal" => &mut info.total,
            "MemFree" => &mut info.free,
            "MemAvailable" => &mut info.available,
            "SwapTotal" => &mut info.swap_total,
            "AnonHugePages" => &mut info.anon_huge,
            _ => continue,
        };
        let kilobytes = value.trim().trim_end_matches(" kB");
        *place = kilobytes.parse::<u64>().unwrap_or(0) << 10;
    }
    Ok(info)
}

/// Returns the number of free 2 MiB blocks in the buddy allocator; `None` if it is not available.
pub fn buddyinfo_free_regions(root: &Root) -> Option<u64> {
    const ORDER: usize = 9;
    let text = root.read("/proc/buddyinfo").ok()?;
    let mut regions = 0;
    for line in text.lines() {
        let (_, counts) = line.split_once("zone")?;
        let orders = counts.split_ascii_whitespace().skip(1).enumerate();
        for (order, count) in orders.filter(|(order, _)| *order >= ORDER) {
            regions += count.parse::<u64>().ok()? << (order - ORDER);
        }
    }
    Some(regions)
}

/// Returns the smallest memory limit of this process's control group and its ancestors (cgroup v2
/// and v1); `None` without a limit below the machine's memory.
pub fn memory_limit(root: &Root) -> Option<u64> {
    Some(own_limit(root)?.bytes)
}

/// Returns the bytes in use in the control group that sets [`memory_limit`].
pub fn memory_in_use(root: &Root) -> Option<u64> {
    own_limit(root)?.in_use(root)
}

/// Returns the bytes that this process's control group may still use below [`memory_limit`]; its
/// file pages count as reclaimable. `None` without a limit.
pub fn memory_headroom(root: &Root) -> Option<u64> {
    Some(own_limit(root)?.headroom(root))
}

fn own_limit(root: &Root) -> Option<Limit> {
    smallest_limit(root, "self")
}

/// Returns the limit that binds a process; `None` without one below the machine's memory.
pub fn limit_of(root: &Root, pid: u32) -> Option<Limit> {
    smallest_limit(root, &pid.to_string())
}

/// A limit of a control group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limit {
    pub bytes: u64,
    file: PathBuf,
}

impl Limit {
    /// The directory of the group.
    pub fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    fn in_use(&self, root: &Root) -> Option<u64> {
        usage(root, self.directory())
    }

    /// Returns the bytes that the group may still use; its file pages count as reclaimable.
    pub fn headroom(&self, root: &Root) -> u64 {
        let stat = root.read(self.directory().join("memory.stat"));
        let stat = stat.unwrap_or_default();
        let of_files: u64 = stat
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(name, _)| matches!(*name, "inactive_file" | "active_file"))
            .filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok())
            .sum();
        let in_use = self.in_use(root).unwrap_or(0);
        self.bytes.saturating_sub(in_use.saturating_sub(of_files))
    }
}

/// Returns the bytes in use in a control group (version 2 or 1).
fn usage(root: &Root, directory: &Path) -> Option<u64> {
    let files = ["memory.current", "memory.usage_in_bytes"];
    files
        .iter()
        .find_map(|file| root.number(directory.join(file)))
}

/// Returns the smallest limit below the machine's memory.
fn smallest_limit(root: &Root, process: &str) -> Option<Limit> {
    let total = meminfo(root).ok()?.total;
    limit_files(root, process)
        .into_iter()
        .filter_map(|file| {
            let bytes = root.number(&file)?;
            Some(Limit { bytes, file })
        })
        .min()
        .filter(|limit| limit.bytes < total)
}

/// Returns the files that may hold a limit: of the process's own group, then of each ancestor that
/// is visible here.
fn limit_files(root: &Root, process: &str) -> Vec<PathBuf> {
    let groups = root.read(format!("/proc/{process}/cgroup"));
    let groups = groups.unwrap_or_default();
    let mounts = hierarchies(root);
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let is_of_memory = controllers.split(',').any(|it| it == "memory");
        let (mounts, file) = match controllers {
            "" => (&mounts.unified, "memory.max"),
            _ if is_of_memory => (&mounts.memory, "memory.limit_in_bytes"),
            _ => continue,
        };
        let all = mounts.iter();
        files.extend(all.flat_map(|mount| limits(mount, Path::new(path), file)));
    }
    files
}

/// The file of a group and of its ancestors, below a mount.
fn limits(mount: &Mount, path: &Path, file: &str) -> Vec<PathBuf> {
    let Some(directory) = mount.shows(path) else {
        return Vec::new();
    };
    let visible = directory.ancestors();
    visible
        .take_while(|it| it.starts_with(&mount.point))
        .map(|directory| directory.join(file))
        .collect()
}

/// What a control group is charged with. Sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charged {
    pub directory: PathBuf,
    pub usage: u64,
    pub anonymous: u64,
    /// Pages of files that were used lately, which monitoring counts as working set.
    pub active_file: u64,
    pub inactive_file: u64,
    pub shared: u64,
    /// Page tables, slab, stacks.
    pub kernel: Option<u64>,
}

impl Charged {
    /// What container monitoring reports as working set: usage without inactive file pages.
    pub fn working_set(&self) -> u64 {
        self.usage.saturating_sub(self.inactive_file)
    }
}

/// Returns what the innermost control group of a process is charged with; `None` for the root
/// group, and without the memory controller.
pub fn charged(root: &Root, pid: u32) -> Option<Charged> {
    let files = limit_files(root, &pid.to_string());
    let file = files.into_iter().find(|file| root.path(file).exists())?;
    let directory = file.parent()?.to_owned();
    let stat = root.read(directory.join("memory.stat")).ok()?;
    let number = |v2: &str, v1: &str| {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(name, _)| *name == v2 || *name == v1);
        found.and_then(|(_, bytes)| bytes.trim().parse::<u64>().ok())
    };
    let is_v2 = file.ends_with("memory.max");
    let either = |name: &str| {
        let v1 = format!("total_{name}");
        number(if is_v2 { name } else { &v1 }, &v1).unwrap_or(0)
    };
    Some(Charged {
        usage: usage(root, &directory)?,
        anonymous: number("anon", "total_rss").unwrap_or(0),
        active_file: either("active_file"),
        inactive_file: either("inactive_file"),
        shared: either("shmem"),
        kernel: number("kernel", "kernel")
            .or_else(|| root.number(directory.join("memory.kmem.usage_in_bytes"))),
        directory,
    })
}

/// Returns the memory that counts as this machine's: the total, or the control group's limit.
///
/// # Errors
/// `/proc/meminfo` cannot be read.
pub fn effective_memory(root: &Root) -> io::Result<u64> {
    let total = meminfo(root)?.total;
    Ok(memory_limit(root).map_or(total, |limit| limit.min(total)))
}

/// A hugetlb pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hugetlb {
    /// Page size in bytes.
    pub page: u64,
    pub total: u64,
    pub free: u64,
    pub overcommit: u64,
}

/// Returns the hugetlb pools, smallest page first; page counts are summed over nodes.
pub fn hugetlb(root: &Root) -> Vec<Hugetlb> {
    const DIRECTORY: &str = "/sys/kernel/mm/hugepages";
    let mut pools: Vec<Hugetlb> = root
        .names(DIRECTORY)
        .iter()
        .filter_map(|name| {
            let kilobytes = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            let file = |file: &str| {
                root.number(format!("{DIRECTORY}/{name}/{file}"))
                    .unwrap_or(0)
            };
            Some(Hugetlb {
                page: kilobytes.parse::<u64>().ok()? << 10,
                total: file("nr_hugepages"),
                free: file("free_hugepages"),
                overcommit: file("nr_overcommit_hugepages"),
            })
        })
        .collect();
    pools.sort_by_key(|pool| pool.page);
    pools
}

/// Returns the maximum number of mappings of a process (`vm.max_map_count`; Linux' default if
/// unreadable).
pub fn max_map_count(root: &Root) -> u64 {
    root.number("/proc/sys/vm/max_map_count").unwrap_or(65_530)
}
