// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn ids_of_containers_are_short() {
    let id = "0123456789abcdef".repeat(4);
    let path = format!("/system.slice/docker-{id}.scope/deadbeefdeadbeef");
    let short = "/system.slice/docker-0123456789ab.scope/deadbeefdeadbeef";
    assert_eq!(short_path(&path), short);
    assert_eq!(short_path("/a\x1b[2J"), "/a?[2J");
}

#[test]
fn the_end_of_a_path_is_kept() {
    assert_eq!(last("/a.slice/b", 6), "..ce/b");
    assert_eq!(last("/a", 6), "/a");
}
