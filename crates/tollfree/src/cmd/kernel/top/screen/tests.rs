// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_page_has_no_more_than_there_is_room_for() {
    assert_eq!(
        page("abc\nd\nlast\n", 2, 2),
        "\x1b[Hab\x1b[K\r\nd\x1b[K\x1b[J"
    );
    assert_eq!(page("abc\n", 0, 0), "\x1b[Habc\x1b[K\x1b[J");
}
