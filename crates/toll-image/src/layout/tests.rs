// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::word::PAYLOAD;

#[test]
fn a_root_fills_its_payload() {
    let root = Root {
        page: (1 << 40) - 1,
        level: 4,
        leaf: true,
        seals: 15,
    };
    assert_eq!(Root::unpack(root.pack()), root);
    let all = Root { level: 7, ..root };
    assert_eq!(all.pack(), PAYLOAD);
}

#[test]
fn reserved_bits_are_refused() {
    let entry = Entry {
        page: 9,
        leaf: true,
    };
    assert_eq!(Entry::unpack(entry.pack()), Some(entry));
    assert_eq!(Entry::unpack(entry.pack() | 1 << 41), None);
    let target = Target {
        inode: 5,
        pending: true,
    };
    assert_eq!(Target::unpack(target.pack()), Some(target));
    assert_eq!(Target::unpack(target.pack() | 1 << 40), None);
}

#[test]
fn times_from_1901_to_2446() {
    for seconds in [-TIME_BASE, -1, 0, 1_800_000_000, (1 << 34) - 1 - TIME_BASE] {
        let time = Time {
            seconds,
            steps: 9_999,
        };
        assert_eq!(Time::unpack(time.pack()), Some(time));
    }
    let late = Time {
        seconds: i64::MAX,
        steps: 0,
    };
    assert_eq!(late.pack() >> 14, (1 << 34) - 1);
    assert_eq!(Time::unpack(10_000), None);
}

#[test]
fn a_table_of_level_1_has_an_entry_for_each_page() {
    assert_eq!(slot_of(513, 1), 1);
    assert_eq!(slot_of(513, 2), 1);
    assert_eq!(slot_of(511, 2), 0);
    assert_eq!(pages_of(2), 262_144);
}
