// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_payload_comes_back() {
    for payload in [0, 1, 0x1234_5678_9abc, PAYLOAD] {
        assert_eq!(decode(4096, encode(4096, payload)), Some(payload));
    }
    assert_eq!(encode(4096, 0), 0);
}

/// The format document has these values.
#[test]
fn the_check_is_the_documented_one() {
    assert_eq!(CHECK.checksum(b"123456789"), 0xd0db);
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    assert_eq!(encode(0x100, 1), 0x0001 | u64::from(check(0x100, 1)) << 48);
}

/// All combinations of one, two and three flipped bits.
#[test]
fn up_to_three_flipped_bits_are_seen() {
    for (offset, payload) in [(256, 0x1_0000_0003), (40960, 0x7fff_1234_5678)] {
        let word = encode(offset, payload);
        assert!(word.count_ones() > 3);
        for a in 0..64 {
            for b in a..64 {
                for c in b..64 {
                    let flipped = word ^ (1 << a | 1 << b | 1 << c);
                    assert_eq!(decode(offset, flipped), None, "{a} {b} {c}");
                }
            }
        }
    }
}

#[test]
fn a_word_belongs_to_its_place() {
    let word = encode(8192, 77);
    let elsewhere = (0..512).map(|n| 16384 + 8 * n);
    assert_eq!(
        elsewhere.filter(|at| decode(*at, word).is_some()).count(),
        0
    );
}

#[test]
fn a_torn_word_is_seen() {
    let (old, new) = (
        encode(8192, 0x1111_2222_3333),
        encode(8192, 0x4444_5555_6666),
    );
    for bytes in 1..8 {
        let low = (1u64 << (8 * bytes)) - 1;
        assert_eq!(decode(8192, new & low | old & !low), None, "{bytes}");
    }
}

#[test]
fn numbers_beyond_the_end_are_zero() {
    assert_eq!(number_at(&[1, 0, 0, 0, 0, 0, 0, 0], 0), 1);
    assert_eq!(number_at(&[1; 12], 8), 0);
}
