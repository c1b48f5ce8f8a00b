// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_line_of_the_histogram() {
    assert_eq!(size_and_count("1024 469"), Some((1024, 469)));
    for wrong in ["", "1024", "x 1", "1 x", "-1 1"] {
        assert_eq!(size_and_count(wrong), None, "{wrong}");
    }
}
