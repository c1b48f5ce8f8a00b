// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

fn record(kind: u32, words: &[u64]) -> Vec<u8> {
    let size = 8 * (words.len() as u64 + 1);
    let header = u64::from(kind) | size << 48;
    let all = std::iter::once(&header).chain(words);
    all.flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn samples_are_found_among_other_records() {
    let walked = (0x04 | 0x20) << 26;
    let mut data = record(2, &[1, 2, 3]);
    data.extend(record(RECORD_SAMPLE, &[0x7000, walked]));
    data.extend(record(RECORD_SAMPLE, &[0x8000, 1 << 26]));
    data.extend(&record(RECORD_SAMPLE, &[0x9000, walked])[..12]);
    let samples = parse(&data);
    let seen: Vec<_> = samples
        .iter()
        .map(|s| (s.address, s.has_tlb_level()))
        .collect();
    assert_eq!(seen, [(0x7000, true), (0x8000, false)]);
}

#[test]
fn a_record_of_no_size_ends_the_ring() {
    assert_eq!(parse(&[0; 64]), []);
}
