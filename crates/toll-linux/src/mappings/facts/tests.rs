// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::memory::{Memory, Pages};
use crate::proc::smaps;

const THP: &str = "sys/kernel/mm/transparent_hugepage";

const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Rss: 4096 kB
AnonHugePages: 2048 kB
THPeligible: 1
VmFlags: rd wr mr mw me ac sd hg
7f0000400000-7f0000600000 rw-s 00000000 00:01 1024     /dev/zero (deleted)
Rss: 4 kB
7f0000600000-7f0000800000 rw-s 00000000 00:01 1025     /memfd:a b (deleted)
VmFlags: rd wr um
7f0000800000-7f0000a00000 rw-s 00000000 00:1f 1026     /dev/shm/x
7f0000a00000-7f0000c00000 r--p 00000000 fe:00 1027     /dev/zero (deleted)
7f0000c00000-7f0000e00000 rw-p 00000000 00:0f 1028     /anon_hugepage (deleted)
KernelPageSize: 2048 kB
Private_Hugetlb: 2048 kB
7f0000e00000-7f0001000000 rw-s 00000000 00:06 1029     /dev/nvidia0
VmFlags: rd wr pf io
7f0001000000-7f0001002000 r-xp 00000000 00:00 0        [vdso]
7f0002000000-7f0002200000 rw-s 00000000 00:01 7        [anon_shmem:pool]
";

fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    let mounts = "30 1 254:0 / / rw - ext4 /dev/vda rw\n\
        35 30 0:31 / /dev/shm rw - tmpfs none rw,huge=within_size\n";
    let all = [("proc/7/smaps", SMAPS), ("proc/7/mountinfo", mounts)];
    for (name, text) in all.iter().chain(files) {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = Root::at(directory.path());
    (directory, root)
}

#[test]
fn what_holds_the_pages_follows_from_device_page_size_and_flags() {
    let (_directory, root) = machine(&[]);
    let survey = Survey::read(&root, 7, None);
    let smaps = smaps(&root, 7).unwrap();
    let found: Vec<Backing> = smaps.iter().map(|smap| survey.backing(smap)).collect();
    let tmpfs = Backing::Tmpfs(HugeOption::WithinSize);
    use Backing::{Anonymous, File, Hugetlb, Kernel, Shared};
    let expected = [
        Anonymous, Shared, Shared, tmpfs, File, Hugetlb, Kernel, Kernel, Shared,
    ];
    assert_eq!(found, expected);
    let facts = survey.facts(&smaps[0]);
    assert_eq!((facts.resident, facts.huge), (4 << 20, 2 << 20));
    assert_eq!((facts.advice, facts.eligible), (Advice::Huge, Some(true)));
    assert!(survey.facts(&smaps[2]).userfaultfd);
    let hugetlb = survey.facts(&smaps[5]);
    assert_eq!((hugetlb.resident, hugetlb.huge), (2 << 20, 2 << 20));
}

#[test]
fn the_policy_is_that_of_the_machine_the_group_and_the_process() {
    let enabled = format!("{THP}/enabled");
    let shmem = format!("{THP}/shmem_enabled");
    let own = format!("{THP}/hugepages-2048kB/shmem_enabled");
    let scan = format!("{THP}/khugepaged/pages_to_scan");
    let (_directory, root) = machine(&[
        (&enabled, "always [madvise] never\n"),
        (&shmem, "always within_size advise [never] deny force\n"),
        (&own, "always inherit within_size [advise] never\n"),
        (&scan, "0\n"),
        ("proc/meminfo", "MemTotal: 1048576 kB\n"),
        ("proc/7/cgroup", "0::/a\n"),
        ("sys/fs/cgroup/a/memory.max", "8388608\n"),
        ("sys/fs/cgroup/a/memory.current", "8000000\n"),
    ]);
    let status = Status {
        thp_enabled: Some(false),
        ..Status::default()
    };
    let policy = Survey::read(&root, 7, Some(&status)).policy;
    let expected = Policy {
        mode: Mode::Madvise,
        shmem: HugeOption::Advise,
        disabled: true,
        group_is_full: true,
        khugepaged_is_off: true,
    };
    assert_eq!(policy, expected);
}

#[test]
fn a_machine_without_files_has_no_policy() {
    let (_directory, root) = machine(&[]);
    let survey = Survey::read(&root, 7, None);
    assert_eq!(survey.policy.mode, Mode::Missing);
    assert!(!survey.policy.disabled && !survey.policy.group_is_full);
    assert!(!survey.sees_pages());
}

/// The edges of a real mapping, with the page map of this process.
#[test]
fn edges_are_the_pages_outside_of_regions() {
    let root = Root::system();
    let pid = std::process::id();
    let memory = Memory::reserve(4 * REGION, Pages::Small).unwrap();
    let start = memory.base() as u64 + PAGE;
    for offset in [PAGE, 2 * REGION, 2 * REGION + PAGE] {
        memory.touch(offset);
    }
    let survey = Survey::read(&root, pid, None);
    let pagemap = survey.pagemap.as_ref().unwrap();
    let end = start + 3 * REGION;
    let inner = regions(start, end, 0, Backing::Anonymous);
    let runs = pagemap.present(start, end).unwrap();
    assert_eq!(spread(&runs, inner, 511), (PAGE, 0));
    assert_eq!(spread(&runs, inner, 500), (PAGE, 2 * PAGE));
}
