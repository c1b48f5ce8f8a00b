// SPDX-License-Identifier: MIT OR Apache-2.0
//! Readers of the machine's settings on fixtures.

use toll_linux::sys::{self, FreePageReporting, Mode, Thp};
use toll_testkit::Directory;

const GIB: u64 = 1 << 30;
const MEMINFO: (&str, &str) = (
    "proc/meminfo",
    "MemTotal:        2097152 kB\nMemFree:          524288 kB\nMemAvailable:    1048576 kB\nHugePages_Total:       0\n",
);

#[test]
fn thp_settings_with_smaller_sizes() {
    let thp = "sys/kernel/mm/transparent_hugepage";
    let machine = Directory::with(&[
        (&format!("{thp}/enabled"), "always madvise [never]\n"),
        (
            &format!("{thp}/defrag"),
            "always defer [defer+madvise] madvise never\n",
        ),
        (&format!("{thp}/hpage_pmd_size"), "2097152\n"),
        (&format!("{thp}/khugepaged/max_ptes_none"), "511\n"),
        (&format!("{thp}/shrink_underused"), "1\n"),
        (
            &format!("{thp}/hugepages-64kB/enabled"),
            "always inherit [madvise] never\n",
        ),
        (
            &format!("{thp}/hugepages-2048kB/enabled"),
            "always [inherit] madvise never\n",
        ),
    ]);
    let found = Thp::read(&machine.root()).unwrap();
    assert_eq!(found.mode, Mode::Never);
    assert_eq!(found.defrag, "defer+madvise");
    assert_eq!(
        found.sizes,
        [(64 << 10, Mode::Madvise), (2 << 20, Mode::Inherit)]
    );
    assert_eq!(found.region_mode(), Mode::Never);
    assert_eq!(
        (found.max_ptes_none, found.shrink_underused),
        (Some(511), Some(true))
    );
    // The setting of a size overrides the machine's.
    machine.write(
        format!("{thp}/hugepages-2048kB/enabled"),
        "[always] inherit madvise never\n",
    );
    assert_eq!(
        Thp::read(&machine.root()).unwrap().region_mode(),
        Mode::Always
    );
}

#[test]
fn a_kernel_without_thp_has_none() {
    assert_eq!(Thp::read(&Directory::with(&[]).root()), None);
    let odd = [("sys/kernel/mm/transparent_hugepage/enabled", "no brackets")];
    assert_eq!(Thp::read(&Directory::with(&odd).root()), None);
}

#[test]
fn free_regions_are_counted_from_order_nine_on() {
    let buddyinfo = "\
Node 0, zone      DMA      9      9      9      9      9      9      9      9      9      1      3
Node 1, zone   Normal  14111   2649    962    322    139     63     38     21      6      5      0
";
    let machine = Directory::with(&[("proc/buddyinfo", buddyinfo)]);
    assert_eq!(
        sys::buddyinfo_free_regions(&machine.root()),
        Some(1 + 2 * 3 + 5)
    );
    assert_eq!(
        sys::buddyinfo_free_regions(&Directory::with(&[]).root()),
        None
    );
}

#[test]
fn the_smallest_limit_of_all_ancestors_counts() {
    let machine = Directory::with(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/pod/inner\n"),
        ("sys/fs/cgroup/pod/inner/memory.max", "max\n"),
        ("sys/fs/cgroup/pod/memory.max", "1073741824\n"),
        ("sys/fs/cgroup/pod/memory.current", "4096\n"),
    ]);
    assert_eq!(sys::memory_limit(&machine.root()), Some(GIB));
    assert_eq!(sys::memory_in_use(&machine.root()), Some(4096));
    assert_eq!(sys::effective_memory(&machine.root()).unwrap(), GIB);
    machine.write("sys/fs/cgroup/pod/inner/memory.max", "536870912\n");
    assert_eq!(sys::memory_limit(&machine.root()), Some(GIB / 2));
}

#[test]
fn limits_of_the_old_control_groups_count_too() {
    let machine = Directory::with(&[
        MEMINFO,
        ("proc/self/cgroup", "9:name=systemd:/\n4:memory,cpu:/job\n"),
        (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        ),
        (
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes",
            "1073741824\n",
        ),
    ]);
    assert_eq!(sys::memory_limit(&machine.root()), Some(GIB));
    // In a container the group's path is the host's, and only the mount's own file exists.
    machine.write("proc/self/cgroup", "4:memory:/docker/1234\n");
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
    assert_eq!(sys::memory_limit(&machine.root()), Some(GIB));
}

#[test]
fn no_limit_below_the_memory_is_no_limit() {
    let machine = Directory::with(&[
        MEMINFO,
        ("proc/self/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/memory.max", "9223372036854771712\n"),
    ]);
    assert_eq!(sys::memory_limit(&machine.root()), None);
    assert_eq!(sys::effective_memory(&machine.root()).unwrap(), 2 * GIB);
}

#[test]
fn hugetlb_pools_smallest_first() {
    let directory = "sys/kernel/mm/hugepages";
    let machine = Directory::with(&[
        (
            &format!("{directory}/hugepages-1048576kB/nr_hugepages"),
            "1\n",
        ),
        (&format!("{directory}/hugepages-2048kB/nr_hugepages"), "8\n"),
        (
            &format!("{directory}/hugepages-2048kB/free_hugepages"),
            "3\n",
        ),
    ]);
    let pools = sys::hugetlb(&machine.root());
    let seen: Vec<_> = pools
        .iter()
        .map(|p| (p.page, p.total, p.free, p.overcommit))
        .collect();
    assert_eq!(seen, [(2 << 20, 8, 3, 0), (GIB, 1, 0, 0)]);
}

#[test]
fn free_page_reporting_is_a_feature_bit_of_the_balloon() {
    let devices = "sys/bus/virtio/devices";
    let disk = [
        (&*format!("{devices}/virtio0/device"), "0x0002\n"),
        (&*format!("{devices}/virtio0/features"), "1111111111\n"),
    ];
    let machine = Directory::with(&disk);
    assert_eq!(
        sys::free_page_reporting(&machine.root()),
        FreePageReporting::NoBalloon
    );
    machine.write(format!("{devices}/virtio1/device"), "0x0005\n");
    machine.write(format!("{devices}/virtio1/features"), "0111001\n");
    assert_eq!(
        sys::free_page_reporting(&machine.root()),
        FreePageReporting::Off
    );
    machine.write(format!("{devices}/virtio1/features"), "0000010\n");
    let on = FreePageReporting::On { order: None };
    assert_eq!(sys::free_page_reporting(&machine.root()), on);
}

#[test]
fn kernel_versions() {
    let machine = Directory::with(&[("proc/sys/kernel/osrelease", "6.12.48+deb13-amd64\n")]);
    assert_eq!(sys::kernel_version(&machine.root()), Some((6, 12)));
    assert_eq!(sys::kernel_release(&machine.root()), "6.12.48+deb13-amd64");
    assert_eq!(sys::kernel_version(&Directory::with(&[]).root()), None);
}
