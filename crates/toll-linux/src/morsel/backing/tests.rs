// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const OPTIONS: &str = "rw,size=1048576k";

fn backing(kind: &str, options: &str) -> Option<Backing> {
    let line =
        format!("42 27 0:39 / /mnt/my\\040models rw,nosuid shared:7 - {kind} none {options}");
    Mount::parse(&line)?.backing()
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
fn points_are_unescaped() {
    let found = backing("tmpfs", OPTIONS).unwrap();
    assert_eq!(found.point, Path::new("/mnt/my models"));
    assert_eq!(unescape("\\04"), Path::new("\\04"));
    assert_eq!(unescape("\\999"), Path::new("\\999"));
}

#[test]
fn broken_lines_are_passed_over() {
    for line in ["", " - ", "1 2 3:4 - tmpfs", "1 2 3:4 / /x - tmpfs none"] {
        assert!(Mount::parse(line).is_none(), "{line}");
    }
}
