// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn sizes_reach_the_kernel() {
    assert_eq!(options(Kind::Morselfs, None), "mode=1777");
    assert_eq!(
        options(Kind::Tmpfs, Some(1 << 30)),
        "mode=1777,huge=always,size=1073741824"
    );
}

#[test]
fn an_empty_pool_is_no_place() {
    let directory = tempfile::tempdir().unwrap();
    let pool = directory
        .path()
        .join("sys/kernel/mm/hugepages/hugepages-2048kB");
    fs::create_dir_all(&pool).unwrap();
    let root = Root::at(directory.path());
    let lacks = |free: &str, kind, size| {
        fs::write(pool.join("nr_hugepages"), "10").unwrap();
        fs::write(pool.join("free_hugepages"), free).unwrap();
        lacks(&root, kind, size)
    };
    assert_eq!(lacks("10", Kind::Hugetlbfs, None), None);
    assert_eq!(lacks("10", Kind::Hugetlbfs, Some(20 << 20)), None);
    assert_eq!(lacks("0", Kind::Tmpfs, None), None);
    let why = lacks("4", Kind::Hugetlbfs, Some(9 << 20)).unwrap();
    assert!(
        why.contains("4 of the 5") && why.contains("nr_hugepages=11"),
        "{why}"
    );
}
