// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn a_status_above_128_is_called_by_its_signal() {
    let exit = |code: i32| failure(ExitStatus::from_raw(code << 8));
    assert_eq!(exit(3), "exit status: 3");
    assert!(exit(139).contains("signal 11"), "{}", exit(139));
    assert_eq!(
        failure(ExitStatus::from_raw(9)),
        "it was killed by signal 9"
    );
    assert_eq!(exit(255), "exit status: 255");
}
