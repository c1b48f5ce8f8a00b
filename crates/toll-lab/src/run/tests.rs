// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::results::tests::example;

#[test]
fn rounds_go_on_until_a_change_shows() {
    let showing = Rounds::Showing {
        change: 0.03,
        most: 30,
    };
    // The spread is known from three runs on; an interval needs six.
    assert_eq!(showing.wanted(1, 0, &example(&[], &[])), 3);
    assert_eq!(
        showing.wanted(1, 3, &example(&[100.0, 101.0, 99.0], &[])),
        6
    );
    let spread = example(&[100.0, 110.0, 90.0], &[]);
    assert_eq!(showing.wanted(1, 3, &spread), 30);
    // Without a counter there is nothing to wait for.
    let zeros = example(&[0.0; 3], &[]);
    assert_eq!(showing.wanted(1, 3, &zeros), 6);
    assert_eq!(Rounds::Usual.wanted(2, 0, &spread), 2);
    assert_eq!(Rounds::Fixed(5).wanted(2, 0, &spread), 5);
}
