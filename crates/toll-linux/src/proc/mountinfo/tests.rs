// SPDX-License-Identifier: MIT OR Apache-2.0

use std::path::Path;

use super::*;

#[test]
fn a_line_has_a_device_a_point_a_kind_and_options() {
    let line =
        b"35 30 0:31 / /mnt/my\\040groups\\134x\\012 rw shared:7 - tmpfs none rw,huge=always";
    let mount = Mount::parse(line).unwrap();
    assert_eq!(mount.device, (0, 31));
    assert_eq!(mount.point, Path::new("/mnt/my groups\\x\n"));
    assert_eq!(mount.kind, "tmpfs");
    assert!(mount.has("rw") && !mount.has("huge"));
    assert_eq!(mount.option("huge"), Some("always"));
    assert_eq!(mount.option("hug"), None);
}

#[test]
fn a_source_with_a_blank_stays_one_field() {
    let line = b"34 30 0:30 /\\040memory /srv/not\\040one rw - ext4 /dev/memory rw,memory";
    assert_eq!(Mount::parse(line).unwrap().options, "rw,memory");
}

#[test]
fn escapes_that_are_none_stay() {
    assert_eq!(unescaped(br"a\04"), br"a\04");
    assert_eq!(unescaped(br"\999\"), br"\999\");
}

#[test]
fn broken_lines_are_passed_over() {
    for line in [
        "",
        " - ",
        "1 2 3:4 - tmpfs",
        "1 2 3:4 / /x - tmpfs none",
        "1 2 3 / /x rw - a b c",
    ] {
        assert!(Mount::parse(line.as_bytes()).is_none(), "{line}");
    }
}
