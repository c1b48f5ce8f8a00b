// SPDX-License-Identifier: MIT OR Apache-2.0

use std::time::{Duration, SystemTime};

use super::*;
use crate::morsel::Identity;

fn morsel(name: &str, allocated: u64, used: u64) -> Morsel {
    Morsel {
        name: name.into(),
        path: name.into(),
        device: 1,
        inode: used,
        size: allocated,
        allocated,
        sealed: true,
        owner: 0,
        mode: 0o400,
        digest: None,
        identity: Some(Identity {
            device: 1,
            inode: 1,
            size: allocated,
            seconds: 0,
            nanoseconds: 0,
            changed_seconds: 0,
            changed_nanoseconds: 0,
            sum: 0,
        }),
        source: None,
        used: SystemTime::UNIX_EPOCH + Duration::from_secs(used),
    }
}

/// Returns the names of the morsels to remove out of three with 10, 20 and 30 bytes, used in
/// this order; those in `busy` are in use, and 5 bytes are free.
fn chosen(needed: u64, limit: Option<u64>, busy: &[&str]) -> Option<Vec<String>> {
    let mut morsels = vec![
        morsel("third", 30, 3),
        morsel("first", 10, 1),
        morsel("second", 20, 2),
    ];
    let mut own = morsel("made by hand", 40, 0);
    own.identity = None;
    morsels.push(own);
    let room = Room {
        used: 100,
        available: 5,
        reserved: 0,
    };
    let mut can_go = |morsel: &Morsel| !busy.iter().any(|name| morsel.name == **name);
    let gone = choose(&morsels, room, needed, limit, &mut can_go)?;
    let name = |morsel: Morsel| morsel.name.into_string().unwrap();
    Some(gone.into_iter().map(name).collect())
}

#[test]
fn the_least_recently_used_go_first() {
    let names = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect());
    assert_eq!(chosen(5, None, &[]), names(&[]));
    assert_eq!(chosen(6, None, &[]), names(&["first"]));
    assert_eq!(chosen(16, None, &[]), names(&["first", "second"]));
    assert_eq!(chosen(65, None, &[]), names(&["first", "second", "third"]));
    assert_eq!(chosen(66, None, &[]), None);
    // Morsels in use stay, and so do those that are not copies of a file.
    assert_eq!(chosen(6, None, &["first"]), names(&["second"]));
    assert_eq!(chosen(6, None, &["first", "second", "third"]), None);
}

#[test]
fn a_limit_counts_all_morsels() {
    let names = |names: &[&str]| Some(names.iter().map(|name| name.to_string()).collect());
    assert_eq!(chosen(5, Some(105), &[]), names(&[]));
    assert_eq!(chosen(5, Some(104), &[]), names(&["first"]));
    assert_eq!(
        chosen(5, Some(45), &[]),
        names(&["first", "second", "third"])
    );
    assert_eq!(chosen(5, Some(44), &[]), None);
    assert_eq!(chosen(5, Some(4), &[]), None);
}

/// A machine with 4 GiB of memory, 1 GiB of it available, and an optional control group with a
/// limit.
fn machine(group: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let meminfo = "MemTotal: 4194304 kB\nMemFree: 10 kB\nMemAvailable: 1048576 kB\n";
    write("proc/meminfo", meminfo);
    write("proc/self/cgroup", "0::/g\n");
    for (file, text) in group {
        write(&format!("sys/fs/cgroup/g/{file}"), text);
    }
    let root = Root::at(directory.path());
    (directory, root)
}

const MIB: u64 = 1 << 20;

#[test]
fn some_memory_is_left_to_other_programs() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::open(directory.path()).unwrap();
    let (_machine, root) = machine(&[]);
    let room = store.room_in(&root, &[]).unwrap();
    assert_eq!(room.reserved, 256 * MIB);
    assert!(room.available <= 768 * MIB, "{room:?}");
    assert!(why_full(room, None).contains("256 MiB of memory are left"));
}

#[test]
fn a_group_has_less_than_its_limit() {
    let (_machine, root) = machine(&[
        ("memory.max", "536870912"),
        ("memory.current", "402653184"),
        // 128 MiB of the memory in use can be reclaimed.
        (
            "memory.stat",
            "anon 1\ninactive_file 67108864\nactive_file 67108864\n",
        ),
    ]);
    let free = free(&root).unwrap();
    assert_eq!(free.reserved, 64 * MIB);
    assert_eq!(free.available, (512 - 384 + 128 - 64) * MIB);
}

#[test]
fn what_a_pool_takes_from_other_memory_is_reserved_too() {
    let (machine, root) = machine(&[]);
    let pool = machine
        .path()
        .join("sys/kernel/mm/hugepages/hugepages-2048kB");
    std::fs::create_dir_all(&pool).unwrap();
    for (file, pages) in [
        ("nr_hugepages", "3"),
        ("free_hugepages", "2"),
        ("nr_overcommit_hugepages", "1000"),
    ] {
        std::fs::write(pool.join(file), pages).unwrap();
    }
    let available = free(&root).unwrap().available;
    assert_eq!(of_pool(&root, 2 * MIB, available), (4 + 768) * MIB);
    assert_eq!(of_pool(&root, 1 << 30, available), 0);
}
