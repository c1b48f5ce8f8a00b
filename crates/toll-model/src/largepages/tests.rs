// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use proptest::prelude::*;

#[test]
fn a_list_may_have_comments() {
    let text = "# eight hot regions\n\n  1682368888832 # 0x187b5000000\n1682368888832\n2097152\n";
    assert_eq!(parse(text).unwrap(), [2 << 20, 1682368888832]);
}

#[test]
fn junk_is_named_with_its_line() {
    for (text, line) in [
        ("2097152\n0x200000\n", "line 2: \"0x200000\""),
        ("2097153\n", "line 1: 2097153 (0x200001) is not a multiple"),
        ("\n\n-2097152", "line 3"),
        ("99999999999999999999999", "line 1"),
        ("0x187b5000000\t4257", "line 1"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(line), "{error}");
    }
}

proptest! {
    #[test]
    fn lists_come_back(regions in prop::collection::btree_set(0u64..1 << 30, 0..50)) {
        let addresses: Vec<u64> = regions.into_iter().map(|region| region * REGION).collect();
        prop_assert_eq!(parse(&format(&addresses)).unwrap(), addresses);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,80}") {
        let _ = parse(&text);
    }
}
