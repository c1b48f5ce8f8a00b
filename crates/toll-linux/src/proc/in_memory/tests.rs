// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

const MOUNTS: &str = "\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:20 / /dev rw - devtmpfs none rw
24 23 0:21 / /dev/shm rw - tmpfs tmpfs rw,huge=advise
25 22 0:22 / /run rw - tmpfs tmpfs rw
26 25 8:2 / /run/data rw - ext4 /dev/sda2 rw
";

fn here() -> InMemory {
    let mounts = MOUNTS
        .lines()
        .filter_map(|line| Mount::parse(line.as_bytes()));
    InMemory::of(&mounts.collect::<Vec<_>>())
}

#[test]
fn files_on_tmpfs_and_on_the_kernel_s_own_mount_lie_in_memory() {
    let here = here();
    for name in [
        "/memfd:buffers (deleted)",
        "/dev/zero (deleted)",
        "/SYSV0052e2c1 (deleted)",
        "/dev/shm/PostgreSQL.42",
        "/run/x (deleted)",
    ] {
        assert!(here.holds(name), "{name}");
    }
    for name in [
        "/usr/lib/x.so",
        "/dev/shmx",
        "/run/data/file",
        "/dev/zero",
        "",
    ] {
        assert!(!here.holds(name), "{name}");
    }
}

#[test]
fn only_shared_writable_mappings_of_them_are_shared_memory() {
    let here = here();
    let line = "7f0000000000-7f0000200000 rw-p 00000000 00:15 9 /dev/shm/x";
    let mut file = Mapping::parse(line).unwrap();
    assert!(!here.is_shared(&file), "a private mapping has copies");
    file.shared = true;
    assert!(here.is_shared(&file));
    file.write = false;
    assert!(!here.is_shared(&file));
    (file.write, file.name) = (true, "[anon_shmem:pool]".into());
    assert!(here.is_shared(&file));
}
