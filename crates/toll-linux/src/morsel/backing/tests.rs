// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const OPTIONS: &str = "rw,size=1048576k";

fn backing(kind: &str, options: &str) -> Option<Backing> {
    let line =
        format!("42 27 0:39 / /mnt/my\\040models rw,nosuid shared:7 - {kind} none {options}");
    Backing::on(&Mount::parse(line.as_bytes())?)
}

#[test]
fn pages_follow_from_kind_and_options() {
    let page = |kind, options| backing(kind, options).map(|backing| backing.page);
    assert_eq!(page("tmpfs", OPTIONS), Some(PAGE));
    assert_eq!(page("tmpfs", "rw,huge=always"), Some(REGION));
    assert_eq!(page("tmpfs", "rw,huge=never"), Some(PAGE));
    assert_eq!(page("hugetlbfs", "rw,pagesize=2M"), Some(REGION));
    assert_eq!(page("hugetlbfs", "rw,pagesize=1024M,size=7"), Some(1 << 30));
    assert_eq!(page("morselfs", "rw"), Some(REGION));
    assert_eq!(page("ext4", OPTIONS), None);
}

#[test]
fn the_mount_point_is_kept() {
    let found = backing("tmpfs", OPTIONS).unwrap();
    assert_eq!(found.point, Path::new("/mnt/my models"));
}
