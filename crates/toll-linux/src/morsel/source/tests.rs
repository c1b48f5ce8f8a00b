// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn clocks_of_whole_seconds_take_longer() {
    let whole = UNIX_EPOCH + 1_000_000 * SECOND;
    let fine = whole + 5 * MILLISECOND;
    assert_eq!(time_to_settle(whole, whole), 2 * SECOND);
    assert_eq!(
        time_to_settle(whole, whole + 30 * MILLISECOND),
        2 * SECOND - 30 * MILLISECOND
    );
    assert_eq!(time_to_settle(whole, whole + 2 * SECOND), Duration::ZERO);
    assert_eq!(
        time_to_settle(fine, fine + 5 * MILLISECOND),
        15 * MILLISECOND
    );
    assert_eq!(
        time_to_settle(fine, fine + 20 * MILLISECOND),
        Duration::ZERO
    );
}

#[test]
fn clocks_that_are_ahead_are_waited_for() {
    let now = UNIX_EPOCH + 1_000_000 * SECOND;
    let fine = now + 5 * MILLISECOND;
    assert_eq!(time_to_settle(fine, now), 20 * MILLISECOND);
    assert_eq!(time_to_settle(now + SECOND, now), 2 * SECOND);
    assert_eq!(time_to_settle(now + 3600 * SECOND, now), Duration::ZERO);
}
