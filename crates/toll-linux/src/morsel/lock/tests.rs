// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn the_holder_is_the_one_of_this_file() {
    let line = "1: FLOCK  ADVISORY  WRITE 707 00:1a:42 0 EOF";
    assert_eq!(flock_holder(line, (0, 0x1a), 42), Some(707));
    assert_eq!(flock_holder(line, (0, 0x1b), 42), None);
    assert_eq!(flock_holder(line, (0, 0x1a), 43), None);
    for other in [
        "",
        "1: POSIX  ADVISORY  WRITE 707 00:1a:42 0 EOF",
        "1: -> FLOCK  ADVISORY  WRITE 707 00:1a:42 0 EOF",
        "1: FLOCK  ADVISORY  WRITE 0 00:1a:42 0 EOF",
        "1: FLOCK  ADVISORY  WRITE 707 <none>:42 0 EOF",
    ] {
        assert_eq!(flock_holder(other, (0, 0x1a), 42), None, "{other}");
    }
}
