// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn the_pace_is_gentle_unless_the_time_would_not_suffice() {
    let seconds = Duration::from_secs;
    assert_eq!(share(GENTLE, seconds(1), seconds(100)), GENTLE);
    assert_eq!(share(GENTLE, seconds(1), seconds(4)), 0.25);
    assert_eq!(share(GENTLE, seconds(9), seconds(4)), HASTY);
    assert_eq!(share(GENTLE, seconds(9), seconds(0)), HASTY);
    assert_eq!(share(HASTY, seconds(1), Duration::MAX), HASTY);
}
