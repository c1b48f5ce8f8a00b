// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn the_note_about_the_heap_is_one_sentence() {
    let note = no_switch(Path::new("/opt/app"));
    assert!(note.starts_with("/opt/app: its malloc"), "{note}");
    assert!(!note.contains("  "), "{note}");
}
