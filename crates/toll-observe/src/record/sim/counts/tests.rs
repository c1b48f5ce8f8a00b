// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const KIB: u64 = 1 << 10;

#[test]
fn arenas_that_share_a_region_share_one_in_the_site() {
    let at = 0x7fff_0000_0000;
    // Sixteen arenas of 256 KiB in two regions, and a mapping far from them.
    let arenas = (0..16).map(|number| (at + number * 256 * KIB, 256 * KIB));
    let far = at + 64 * REGION + 4096;
    let mut layout = Anonymous::of(arenas.chain([(far, 3 * REGION)]));
    for number in (0..16).rev() {
        let arena = at + number * 256 * KIB;
        assert_eq!(layout.offset(arena, 256 * KIB), number * 256 * KIB);
    }
    assert_eq!(layout.offset(far, 3 * REGION), 2 * REGION + 4096);
    // A mapping that was unknown; the one before it extends into four regions.
    assert_eq!(layout.offset(5 * REGION + 8192, KIB), 6 * REGION + 8192);
}
