// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn counts_keep_three_digits_and_group_thousands() {
    assert_eq!(count(0.0), "0");
    assert_eq!(count(0.25), "0.25");
    assert_eq!(count(4257.0), "4,257");
    assert_eq!(count(-999_999.0), "-999,999");
    assert_eq!(count(1_234_567.0), "1.23 M");
    assert_eq!(count(45.6e9), "45.6 G");
    assert_eq!(count(f64::NAN), "-");
    assert_eq!(of(1, "region"), "1 region");
    assert_eq!(of(1024, "region"), "1,024 regions");
}

#[test]
fn shares_are_percent() {
    assert_eq!(percent(0.123), "12.3 %");
    assert_eq!(percent(1.0), "100 %");
    assert_eq!(percent(0.0), "0 %");
    assert_eq!(percent(0.9996), ">99.9 %");
    assert_eq!(percent(0.0004), "<0.1 %");
    assert_eq!(percent(-0.05), "-5.0 %");
}
