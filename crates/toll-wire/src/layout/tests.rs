// SPDX-License-Identifier: MIT OR Apache-2.0
extern crate std;

use std::vec::Vec;

use super::Value;

layout! {
    /// Has each kind of field.
    pub struct Sample {
        pub magic: [u8; 4],
        pub small: u32,
        pub large: u64,
        pub many: [u32; 2],
    }
}

const BYTES: [u8; 24] = [
    b'T', b'O', b'L', b'L', 1, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 4, 5, 0, 0, 0, 6, 0, 0, 0,
];
const SAMPLE: Sample = Sample {
    magic: *b"TOLL",
    small: 0x201,
    large: 0x0400_0000_0000_0003,
    many: [5, 6],
};

#[test]
fn bytes_are_little_endian_and_in_order() {
    let mut written = Vec::new();
    SAMPLE.write(&mut written);
    assert_eq!(written, BYTES);
    assert_eq!(Sample::read(&BYTES), SAMPLE);
}

#[test]
fn a_value_ignores_what_follows() {
    let mut bytes = BYTES.to_vec();
    bytes.push(0xff);
    assert_eq!(Sample::read(&bytes), SAMPLE);
}

#[test]
#[should_panic]
fn too_few_bytes_are_refused() {
    Sample::read(&BYTES[..23]);
}
