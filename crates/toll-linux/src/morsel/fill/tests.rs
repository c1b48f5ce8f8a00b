// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;
use std::io::Read;

use super::*;

fn backing(kind: Kind, page: u64) -> Backing {
    Backing {
        kind,
        point: "/dev/shm".into(),
        page,
    }
}

fn copy(size: usize, backing: &Backing) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("source");
    let content: Vec<u8> = (0..size as u32).map(|at| (at ^ (at >> 8)) as u8).collect();
    fs::write(&path, &content).unwrap();
    let source = File::open(&path).unwrap();
    let mut morsel = tempfile::tempfile_in("/dev/shm").unwrap();
    morsel
        .set_len((size as u64).next_multiple_of(backing.smallest_page()))
        .unwrap();
    let mut last = 0;
    let copy = Copy {
        source: &source,
        source_path: &path,
        morsel: &morsel,
        directory: directory.path(),
        size: size as u64,
        backing,
        has_room: &|_| true,
    };
    let copied = copy.run(&mut |done| {
        assert!(done >= last);
        last = done;
        true
    });
    assert_eq!(copied.unwrap().digest, blake3::hash(&content));
    assert_eq!(
        copy.digest_again(&mut |_| true).unwrap(),
        blake3::hash(&content)
    );
    assert_eq!(last, size as u64);
    let mut copied = Vec::new();
    morsel.read_to_end(&mut copied).unwrap();
    assert_eq!(copied[..size], content);
    copied.split_off(size)
}

/// Copies 10 MiB of a file of `length` zeros.
fn copy_ten_mib_of(
    length: u64,
    progress: &mut dyn FnMut(u64) -> bool,
    has_room: &dyn Fn(u64) -> bool,
) -> Result<Copied, MorselError> {
    let source = tempfile::NamedTempFile::new().unwrap();
    source.as_file().set_len(length).unwrap();
    let morsel = tempfile::tempfile_in("/dev/shm").unwrap();
    morsel.set_len(10 << 20).unwrap();
    let copy = Copy {
        source: source.as_file(),
        source_path: source.path(),
        morsel: &morsel,
        directory: Path::new("/dev/shm"),
        size: 10 << 20,
        backing: &backing(Kind::Tmpfs, PAGE),
        has_room,
    };
    copy.run(progress)
}

#[test]
fn all_bytes_arrive_and_zeroes_behind_them() {
    for size in [1, 4095, 4096, 5000, (4 << 20) + 1, (64 << 20) + 4097] {
        // Treat the directory as tmpfs.
        for backing in [
            backing(Kind::Hugetlbfs, 2 << 20),
            backing(Kind::Tmpfs, PAGE),
            backing(Kind::Tmpfs, 2 << 20),
            backing(Kind::Morselfs, 2 << 20),
        ] {
            let behind = copy(size, &backing);
            assert!(behind.iter().all(|byte| *byte == 0), "{size} {backing:?}");
        }
    }
}

#[test]
fn whoever_watches_can_end_it() {
    let mut seen = 0;
    let mut watch = |done| {
        seen = done;
        done < 5 << 20
    };
    let ended = copy_ten_mib_of(10 << 20, &mut watch, &|_| true);
    assert!(matches!(ended, Err(MorselError::Interrupted)));
    assert!((5 << 20..10 << 20).contains(&seen));
}

#[test]
fn a_file_that_shrinks_is_no_copy() {
    let ended = copy_ten_mib_of(5000, &mut |_| true, &|_| true).map(drop);
    assert!(matches!(ended, Err(MorselError::Changing(_))), "{ended:?}");
}

/// Other programs may use memory during the copy.
#[test]
fn memory_that_runs_short_ends_it() {
    let mut begun = false;
    let mut watch = |_| {
        begun = true;
        true
    };
    let ended = copy_ten_mib_of(10 << 20, &mut watch, &|bytes| bytes < 10 << 20).map(drop);
    assert!(matches!(ended, Err(MorselError::Full { .. })), "{ended:?}");
    assert!(!begun);
}
