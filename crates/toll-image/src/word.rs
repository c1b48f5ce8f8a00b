// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words: 48 bits of payload, and a check of 16 bits over the payload and the place of the word.

use crc::{CRC_16_T10_DIF, CRC_32_ISCSI, Crc, Table};

/// The bits of a payload.
pub const PAYLOAD: u64 = (1 << 48) - 1;

const CHECK: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_T10_DIF);
const SUM: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

/// The CRC32C of longer parts: the superblock, names, extended attributes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    SUM.checksum(bytes)
}

/// The check of a word at an offset of the range.
pub fn check(offset: u64, payload: u64) -> u16 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&offset.to_le_bytes());
    bytes[8..].copy_from_slice(&payload.to_le_bytes());
    CHECK.checksum(&bytes)
}

/// The word that holds a payload. A payload of 0 is the word 0, so that zeroed memory is empty.
pub fn encode(offset: u64, payload: u64) -> u64 {
    debug_assert!(payload <= PAYLOAD);
    match payload {
        0 => 0,
        _ => payload | u64::from(check(offset, payload)) << 48,
    }
}

/// The payload of a word; `None` if it is damaged, or belongs elsewhere.
pub fn decode(offset: u64, word: u64) -> Option<u64> {
    let payload = word & PAYLOAD;
    (encode(offset, payload) == word).then_some(payload)
}

/// The eight bytes at a place, as a number; 0 beyond the end.
pub fn number_at(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..at + 8);
    part.and_then(|part| part.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
