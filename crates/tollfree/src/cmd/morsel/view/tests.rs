// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn times_are_as_exact_as_people_want_them() {
    for (seconds, words) in [
        (9, "now"),
        (119, "119 s ago"),
        (7199, "119 min ago"),
        (172_799, "47 h ago"),
        (172_800, "2 days ago"),
    ] {
        assert_eq!(in_words(seconds), words);
    }
}
