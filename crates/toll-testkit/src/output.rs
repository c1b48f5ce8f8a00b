// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a command printed, and its exit code.

use std::process::Output;

use serde_json::Value;

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

pub fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

/// Returns stdout as JSON.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(output)))
}

/// Asserts success, and returns stdout.
pub fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Asserts the exit code, and that stderr contains all parts.
pub fn assert_fails(output: &Output, code: i32, says: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for part in says {
        assert!(said.contains(part), "{part:?} is not in: {said}");
    }
}
