// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_page_has_no_more_than_there_is_room_for() {
    assert_eq!(
        page("abc\nd\nlast\n", 2, 2),
        "\x1b[Hab\x1b[K\r\nd\x1b[K\x1b[J"
    );
}

#[test]
fn attributes_take_no_column_and_are_ended() {
    assert_eq!(cut("\x1b[7mabc\x1b[0m", 2), "\x1b[7mab\x1b[0m");
    assert_eq!(cut("\x1b[1mä", 5), "\x1b[1mä");
}
