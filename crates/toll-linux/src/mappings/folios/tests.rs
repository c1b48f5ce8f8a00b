// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

#[test]
fn folios_are_a_head_and_its_tails() {
    let mut flags = [0; ENTRIES];
    flags[4] = HEAD;
    flags[5..8].fill(TAIL);
    flags[8] = HEAD;
    flags[9] = TAIL;
    let orders = orders(&flags);
    assert_eq!(orders[..12], [0, 0, 0, 0, 2, 2, 2, 2, 1, 1, 0, 0]);
    flags = [TAIL; ENTRIES];
    flags[0] = HEAD;
    assert_eq!(super::orders(&flags), [9; ENTRIES]);
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// A machine of two blocks of frames: single pages, and a folio of 2 MiB with 3 pages left.
fn machine(entries: &[u64]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    let mut flags = vec![0; ENTRIES];
    flags.push(HEAD);
    flags.resize(2 * ENTRIES, TAIL);
    let mut pagemap = entries.to_vec();
    pagemap.resize(ENTRIES, 0);
    std::fs::create_dir_all(directory.path().join("proc/7")).unwrap();
    std::fs::write(directory.path().join("proc/7/pagemap"), bytes(&pagemap)).unwrap();
    std::fs::write(directory.path().join("proc/kpageflags"), bytes(&flags)).unwrap();
    let root = Root::at(directory.path());
    (directory, root)
}

#[test]
fn the_rest_of_a_split_folio_is_retained() {
    let first = PRESENT | ENTRIES as u64;
    let (_directory, root) = machine(&[first, first + 1, 0, first + 3, PRESENT | 5]);
    let found = folios(&root, 7, vec![0], Duration::from_secs(60)).unwrap();
    assert_eq!((found.read, found.regions), (1, 1));
    assert_eq!((found.bytes[9], found.bytes[0]), (3 * PAGE, PAGE));
    assert_eq!(found.retained, REGION - 3 * PAGE);
}

#[test]
fn hidden_frame_numbers_are_an_error() {
    let (_directory, root) = machine(&[PRESENT]);
    let error = folios(&root, 7, vec![0], Duration::from_secs(60)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    let error = folios(&root, 8, vec![0], Duration::from_secs(60)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
