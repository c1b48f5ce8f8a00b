// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_status_is_exit_or_signal() {
    assert_eq!(parse_status("exit 3\n"), Some(Status::Exit(3)));
    assert_eq!(parse_status("signal 9"), Some(Status::Signal(9)));
    for garbage in ["", "exit", "exit x", "gone 1"] {
        assert_eq!(parse_status(garbage), None, "{garbage}");
    }
}
