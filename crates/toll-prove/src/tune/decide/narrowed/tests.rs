// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn an_interval_of_many_pairs_is_narrowed_and_one_of_few_is_widened() {
    let interval = Interval {
        median: 1.2,
        low: 1.1,
        high: 1.4,
    };
    let of = |pairs| narrowed(&interval, pairs).unwrap();
    assert!(narrowed(&interval, 1).is_none());
    let many = of(20);
    assert_eq!(many.median, 1.2);
    assert!(1.1 < many.low && many.low < 1.2 && 1.2 < many.high && many.high < 1.4);
    let few = of(2);
    assert_eq!(few.median, 1.2);
    assert!(few.low < 1.1 && few.high > 1.4);
    let widths = [2, 3, 4, 5, 6].map(|pairs| of(pairs).high - of(pairs).low);
    assert!(widths.is_sorted_by(|a, b| a > b), "{widths:?}");
}
