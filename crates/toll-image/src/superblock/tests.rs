// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

fn image(pages: u64, superblock: &Superblock) -> Vec<u8> {
    let mut image = vec![0; (pages * PAGE) as usize];
    for page in 0..2 {
        image[page * 4096..][..256].copy_from_slice(&superblock.encode());
    }
    image
}

fn ours() -> Superblock {
    Superblock {
        compatible: 1 << 63,
        incompatible: 0,
        uuid: *b"0123456789abcdef",
        pages: 18,
    }
}

/// Replaces bytes of both copies, and corrects their checksums.
fn changed(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut image = image(18, &ours());
    for page in [0, 4096] {
        image[page + at..][..bytes.len()].copy_from_slice(bytes);
        let sum = crc32c(&image[page..page + SUMMED]).to_le_bytes();
        image[page + SUMMED..][..4].copy_from_slice(&sum);
    }
    image
}

#[test]
fn both_copies_are_read_and_one_is_enough() {
    let mut image = image(20, &ours());
    let found = Superblock::read(&image).unwrap();
    assert_eq!((found.superblock, found.damaged), (ours(), vec![]));
    image[40] ^= 1;
    let found = Superblock::read(&image).unwrap();
    assert_eq!((found.superblock, found.damaged), (ours(), vec![0]));
    image[4096 + 40] ^= 1;
    assert!(matches!(Superblock::read(&image), Err(Refusal::Damaged)));
}

#[test]
fn what_is_not_ours_is_refused() {
    let read = |image: Vec<u8>| Superblock::read(&image).unwrap_err();
    assert!(matches!(read(vec![0; 65536]), Refusal::Foreign));
    assert!(matches!(read(vec![0; 15 * 4096]), Refusal::TooSmall(15)));
    assert!(matches!(read(changed(8, &[2])), Refusal::Newer(2)));
    assert!(matches!(read(changed(24, &[4])), Refusal::Features(4)));
    assert!(matches!(read(changed(12, &[13])), Refusal::Damaged));
    assert!(matches!(read(changed(48, &[255; 8])), Refusal::Damaged));
    let cut = image(17, &ours());
    assert!(matches!(
        read(cut),
        Refusal::Truncated {
            recorded: 18,
            present: 17
        }
    ));
}

#[test]
fn a_uuid_has_five_groups() {
    assert_eq!(
        uuid_text(&[0xab; 16]),
        "abababab-abab-abab-abab-abababababab"
    );
}
