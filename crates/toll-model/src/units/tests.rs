// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use proptest::prelude::*;

#[test]
fn sizes() {
    assert_eq!(parse_size("4096"), Ok(4096));
    assert_eq!(parse_size("64K"), Ok(64 << 10));
    assert_eq!(parse_size("512M"), Ok(512 << 20));
    assert_eq!(parse_size("1.5GiB"), Ok(3 << 29));
    assert_eq!(parse_size(" 2 tb "), Ok(2 << 40));
    for wrong in [
        "",
        "M",
        "-1M",
        "1X",
        "1e3",
        "1.2.3G",
        "99999999T",
        "NaN",
        "inf",
    ] {
        assert!(parse_size(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn durations() {
    assert_eq!(parse_duration("300ms"), Ok(Duration::from_millis(300)));
    assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
    assert_eq!(parse_duration("4m"), Ok(Duration::from_secs(240)));
    assert_eq!(parse_duration("20us"), Ok(Duration::from_micros(20)));
    assert_eq!(parse_duration("7"), Ok(Duration::from_secs(7)));
    for wrong in ["", "s", "-1s", "1d", "1e9s", "99999999999999999999999h"] {
        assert!(parse_duration(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn ranges() {
    let seed = 0x187_8000_0000..0x187_c000_0000;
    assert_eq!(parse_range("0x18780000000..0x187c0000000"), Ok(seed));
    assert_eq!(parse_range("4096..8192"), Ok(4096..8192));
    for wrong in [
        "", "..", "1..", "..2", "2..2", "3..2", "1-2", "0x..1", "0xg..0xh", "+1..2",
    ] {
        assert!(parse_range(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn people_read_short_numbers() {
    assert_eq!(format_size(3 << 29), "1.5 GiB");
    assert_eq!(format_size(12), "12 B");
    assert_eq!(format_size(512 << 20), "512 MiB");
    assert_eq!(format_ns(1.5e9), "1.5 s");
    assert_eq!(format_ns(-220_000.0), "-220 us");
    assert_eq!(format_ns(0.0), "0 ns");
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,24}") {
        let _ = (parse_size(&text), parse_duration(&text), parse_range(&text));
    }

    #[test]
    fn bytes_come_back(bytes in any::<u64>()) {
        prop_assert_eq!(parse_size(&bytes.to_string()), Ok(bytes));
    }
}
