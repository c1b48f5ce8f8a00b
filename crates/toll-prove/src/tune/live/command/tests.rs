// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn printed(command: &str) -> Result<f64> {
    match output_of(command)? {
        Ran::Done(text) => number(command, &text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_number_with_white_space_is_read() {
    assert_eq!(printed("printf '  12345\\r\\n'").unwrap(), 12345.0);
    assert_eq!(printed("echo 1.5e3").unwrap(), 1500.0);
}

#[test]
fn anything_else_is_an_error_that_shows_it() {
    for (command, part) in [
        ("echo 12 requests", "\"12 requests\", which is not a number"),
        ("true", "\"\", which is not a number"),
        ("echo nan", "which is not a number"),
        ("echo no server >&2; exit 3", "exit status: 3: no server"),
    ] {
        let error = printed(command).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(command), "{error}");
    }
}
