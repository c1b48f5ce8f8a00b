// SPDX-License-Identifier: MIT OR Apache-2.0

use std::fs;
use std::time::{Duration, SystemTime};

use super::*;

#[test]
fn text_comes_back() {
    let identity = Identity {
        device: 0xfe01,
        inode: u64::MAX,
        size: 7 << 30,
        seconds: -5,
        nanoseconds: 999_999_999,
        changed_seconds: 7,
        changed_nanoseconds: 8,
        sum: 1,
    };
    assert_eq!(identity.to_string().parse(), Ok(identity));
    for wrong in [
        "",
        "1-2-3-4.5",
        "1-2-3-4.5-6",
        "1-2-3-4.5-6.7-8-9",
        "1-2-3-4.x-6.7-8",
        "1-2-3-4.1ffffffff-6.7-8",
        "1-2-3-4.5-6.1ffffffff-8",
    ] {
        assert_eq!(wrong.parse::<Identity>(), Err(()), "{wrong}");
    }
}

#[test]
fn the_sample_reaches_both_ends() {
    assert_eq!(offsets(0), [0; 0]);
    assert_eq!(offsets(1), [0]);
    assert_eq!(offsets(4097), [0, 4096]);
    let large = offsets(7 << 30);
    assert_eq!(large.len() as u64, BLOCKS);
    assert_eq!((large[0], large[63]), (0, (7 << 30) - BLOCK));
    assert!(large.windows(2).all(|two| two[0] < two[1]));
    assert_eq!(offsets(u64::MAX)[63], u64::MAX - BLOCK);
}

#[test]
fn another_state_is_another_identity() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    let open = || File::open(&path).unwrap();
    let set_time = |time| {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
    };
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    fs::write(&path, vec![7; 1 << 20]).unwrap();
    set_time(then);
    let first = Identity::of(&open()).unwrap();
    assert_eq!(Identity::of(&open()).unwrap(), first);
    assert!(first.may_be(&open().metadata().unwrap()));
    // The kernel's clock ticks every few milliseconds.
    std::thread::sleep(Duration::from_millis(20));
    // The same size and modification time with different content.
    fs::write(&path, vec![8; 1 << 20]).unwrap();
    set_time(then);
    let second = Identity::of(&open()).unwrap();
    assert_eq!(
        Identity {
            sum: first.sum,
            changed_seconds: first.changed_seconds,
            changed_nanoseconds: first.changed_nanoseconds,
            ..second
        },
        first
    );
    assert_ne!(second.sum, first.sum);
    assert!(!first.may_be(&open().metadata().unwrap()));
}

/// Blocks that are not sampled may change too, and the writer may reset the modification time.
#[test]
fn a_change_between_the_samples_is_seen() {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &vec![7; 4 << 20]).unwrap();
    let first = Identity::of(&file).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let between = offsets(4 << 20)[1] + BLOCK;
    file.write_all_at(b"8", between).unwrap();
    file.set_modified(modified).unwrap();
    let second = Identity::of(&file).unwrap();
    assert_eq!(second.sum, first.sum);
    assert_ne!(second, first);
    assert!(!first.may_be(&file.metadata().unwrap()));
}
