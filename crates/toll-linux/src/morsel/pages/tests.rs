// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;

use super::*;

const MAPS: &str = "\
7f0000000000-7f0000200000 r--s 00000000 00:27 42                         /run/morsels/a
7f0000200000-7f0000400000 r--s 00200000 00:27 42                         /run/morsels/a
7f0000400000-7f0000401000 rw-p 00000000 00:00 0
7f0000500000-7f0000501000 r--p 00000000 fe:00 42                         /usr/lib/x
7ffff7fc0000-7ffff7fc2000 r-xp 00000000 00:00 0                          [vdso]
";

#[test]
fn each_process_counts_once() {
    let directory = tempfile::tempdir().unwrap();
    for (pid, maps) in [("7", MAPS), ("70", MAPS), ("self", MAPS), ("9", "")] {
        let path = directory.path().join("proc").join(pid);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("maps"), maps).unwrap();
    }
    let mapped = Mapped::read(&Root::at(directory.path()));
    assert!(mapped.complete);
    assert_eq!(mapped.count(libc::makedev(0, 0x27), 42), 2);
    assert_eq!(mapped.count(libc::makedev(0xfe, 0), 42), 2);
    assert_eq!(mapped.count(libc::makedev(0, 0x27), 43), 0);
    assert_eq!(mapped.count(0, 0), 0);
    // A process that cannot be read.
    fs::create_dir_all(directory.path().join("proc/11/maps")).unwrap();
    assert!(!Mapped::read(&Root::at(directory.path())).complete);
}

#[test]
fn huge_pages_of_one_mapping() {
    let smaps = "\
7f0000000000-7f0000200000 r--s 00000000 00:27 42 /a
Rss:                2048 kB
ShmemPmdMapped:     2048 kB
7f0000200000-7f0000400000 r--s 00000000 00:27 42 /b
ShmemPmdMapped:        0 kB
";
    assert_eq!(mapped_huge(smaps, 0x7f00_0000_0000), Some(2 << 20));
    assert_eq!(mapped_huge(smaps, 0x7f00_0020_0000), Some(0));
    assert_eq!(mapped_huge(smaps, 0x1000), None);
}
