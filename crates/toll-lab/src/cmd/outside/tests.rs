// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn stressors_are_named_by_the_program() {
    let text = "class 'vm' stressors: bad-altstack brk \n";
    assert_eq!(names(text), ["bad-altstack", "brk"]);
    assert!(names("stress-ng: info: x").is_empty());
}
