// SPDX-License-Identifier: MIT OR Apache-2.0

use toll_observe::heat::Cell;

use super::*;

#[test]
fn strips_fit_the_style() {
    let cell = |misses| Cell {
        misses,
        ..Cell::default()
    };
    let strip = Strip {
        unit: 2 << 20,
        lead: 0,
        cells: [4.0, 1.0, 0.0, 0.0].map(cell).to_vec(),
    };
    let style = |unicode, colour| Style {
        width: 80,
        unicode,
        colour,
    };
    assert_eq!(style(true, false).strip(&strip, 4.0), "█▄··");
    assert_eq!(style(false, false).strip(&strip, 4.0), "84..");
    let coloured = style(true, true).strip(&strip, 4.0);
    assert!(coloured.ends_with("\x1b[0m") && coloured.contains('█'));
}
