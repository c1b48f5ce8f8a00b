// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn rows_have_what_came_of_them() {
    let it = row("mmap 2 30 3 0x200000 0x600000 1900000 512 75 # at 0x7f0000200000 huge 2 small 1");
    let it = it.unwrap();
    assert_eq!((it.site.as_str(), it.begin), ("mmap 2 30 3", 0x20_0000));
    assert_eq!(it.address, Some(0x7f00_0020_0000));
    assert_eq!((it.huge, it.small, it.confidence), (2, 1, 75));
    let heap = row("heap 0x0 0x1000 0 8 100 # at 0x0 huge 0 small 0").unwrap();
    assert_eq!((heap.site.as_str(), heap.address), ("heap", None));
    assert_eq!(heap.observed, None);
    let seen = row("heap 0x0 0x1000 0 8 100 # at 0x0 huge 9 small 0 observed 8 used 3").unwrap();
    let observed = Observed {
        regions: 8,
        used: 3,
    };
    assert_eq!((seen.huge, seen.observed), (9, Some(observed)));
    for other in ["mm_profile 1", "end 3", "heap 0x0 0x1000 0 8 100", ""] {
        assert_eq!(row(other), None, "{other}");
    }
}
