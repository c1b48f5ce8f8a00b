// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn numbers_need_as_many_lines_as_they_need() {
    assert_eq!(
        wrapped("costs:", vec!["fault 1 us".into(), "split 2 us".into()]),
        "\ncosts: fault 1 us, split 2 us\n"
    );
    let text = wrapped("costs:", vec!["compact block 2 ms (+1.5 ms)".to_owned(); 7]);
    assert!(
        text.lines().all(|line| line.chars().count() <= WIDTH),
        "{text}"
    );
    assert_eq!(
        (text.matches("block").count(), text.matches(',').count()),
        (7, 6)
    );
    assert_eq!(text.trim_start().lines().count(), 4, "{text}");
}
