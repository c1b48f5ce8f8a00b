// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn asking_what_the_kernel_can_changes_nothing() {
    let before = state();
    can_be_advised_only();
    assert_eq!(state(), before);
}
