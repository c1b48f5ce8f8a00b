// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of files: made once, complete or not at all, removed for space.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use toll_model::PAGE;

use super::Fixture;
use crate::morsel::{MorselError, Request, Source, Store};

#[test]
fn a_copy_is_made_once() {
    let fixture = Fixture::new();
    let path = fixture.file("model", b"weights");
    let first = fixture.put(&path).unwrap();
    assert!(first.filled && first.removed.is_empty());
    let morsel = &first.morsel;
    assert_eq!(fs::read(&morsel.path).unwrap(), b"weights");
    assert_eq!(morsel.source.as_deref(), Some(path.as_os_str()));
    assert_eq!((morsel.size, morsel.sealed), (7, true));
    assert_eq!(
        fs::metadata(&morsel.path).unwrap().modified().unwrap(),
        fs::metadata(&path).unwrap().modified().unwrap()
    );
    let second = fixture.put(&path).unwrap();
    assert!(!second.filled);
    assert_eq!(second.morsel.inode, morsel.inode);
    assert_eq!(fixture.names(), ["model"]);
}

#[test]
fn a_file_that_changed_is_copied_again() {
    let fixture = Fixture::new();
    let path = fixture.file("model", b"weights");
    let old = fixture.put(&path).unwrap().morsel;
    fixture.file("model", b"Weights");
    assert!(
        fixture
            .store
            .find(&Source::open(&path).unwrap().identity)
            .is_none()
    );
    let new = fixture.put(&path).unwrap();
    assert!(new.filled);
    assert_eq!(new.removed[0].inode, old.inode);
    assert_eq!(fs::read(&new.morsel.path).unwrap(), b"Weights");
    assert_eq!(fixture.names(), ["model"]);
    // Another file at the old path.
    fs::remove_file(&path).unwrap();
    fixture.file("model", b"Weights");
    assert!(fixture.put(&path).unwrap().filled);
    assert_eq!(fixture.names(), ["model"]);
}

#[test]
fn two_files_of_one_name() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.file("a/model", b"1"), fixture.file("b/model", b"2"));
    fixture.put(&one).unwrap();
    let morsel = fixture.put(&other).unwrap().morsel;
    assert!(morsel.name.to_string_lossy().starts_with("model~"));
    assert_eq!(fs::read(&morsel.path).unwrap(), b"2");
    let taken = fixture.put_within(&fixture.file("c", b"3"), Some("model"), None);
    assert!(
        matches!(&taken, Err(MorselError::Taken { of, .. }) if one == Path::new(of)),
        "{taken:?}"
    );
    // This did not copy anything.
    assert_eq!(fixture.names().len(), 2);
    let named = fixture.put_within(&one, Some("first"), None).unwrap();
    assert_eq!(
        (named.filled, &*named.morsel.name),
        (false, OsStr::new("first"))
    );
    // Two names of one morsel.
    let morsels = fixture.store.list().unwrap();
    assert_eq!(morsels.len(), 3);
    assert_eq!(fixture.store.room(&morsels).unwrap().used, 2 * PAGE);
}

#[test]
fn nothing_is_left_of_an_interrupted_copy() {
    let fixture = Fixture::new();
    let path = fixture.file("model", &vec![1; 16 << 20]);
    let source = Source::open(&path).unwrap();
    let ended = fixture.put_watched(&source, &mut |done| done.unwrap_or(0) < 5 << 20);
    assert!(matches!(ended, Err(MorselError::Interrupted)), "{ended:?}");
    assert_eq!(fixture.names(), [""; 0]);
    assert_eq!(fixture.store.records().len(), 0);
}

#[test]
fn a_file_that_changes_meanwhile_is_not_kept() {
    let fixture = Fixture::new();
    let path = fixture.file("model", &vec![1; 16 << 20]);
    let source = Source::open(&path).unwrap();
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    let ended = fixture.put_watched(&source, &mut |_| writer.write_all(b"2").is_ok());
    assert!(matches!(ended, Err(MorselError::Changing(_))), "{ended:?}");
    assert_eq!(fixture.names(), [""; 0]);
}

#[test]
fn copies_of_one_file_at_once_are_one() {
    let fixture = Fixture::new();
    let path = fixture.file("model", &vec![1; 32 << 20]);
    let filled = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                filled.fetch_add(fixture.put(&path).unwrap().filled.into(), Relaxed);
            });
        }
    });
    assert_eq!(filled.into_inner(), 1);
    assert_eq!(fixture.names(), ["model"]);
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let fixture = Fixture::new();
    let put =
        |name: &str, limit| fixture.put_within(&fixture.files.path().join(name), None, Some(limit));
    for name in ["first", "second", "third", "fourth", "fifth"] {
        fixture.file(name, name.as_bytes());
    }
    for name in ["first", "second", "third"] {
        put(name, 3 * PAGE).unwrap();
    }
    let set_used = |name: &str, seconds| {
        let times = fs::FileTimes::new()
            .set_accessed(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let file = File::open(fixture.store.directory.join(name)).unwrap();
        file.set_times(times).unwrap();
        file
    };
    set_used("first", 1);
    set_used("third", 2);
    let in_use = set_used("second", 0);
    // A repeated request.
    put("first", 3 * PAGE).unwrap();
    let removed = put("fourth", 3 * PAGE).unwrap().removed;
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0].name, "third");
    assert_eq!(fixture.names(), ["first", "fourth", "second"]);
    let full = put("fifth", PAGE);
    assert!(matches!(full, Err(MorselError::Full { .. })), "{full:?}");
    assert_eq!(fixture.names(), ["first", "fourth", "second"]);
    drop(in_use);
    assert_eq!(put("fifth", PAGE).unwrap().removed.len(), 3);
    assert_eq!(fixture.names(), ["fifth"]);
}

#[test]
fn sealing_waits_for_no_writer() {
    let fixture = Fixture::new();
    let path = fixture.store.directory.join("made");
    let writer = File::create(&path).unwrap();
    let name = OsStr::new("made");
    assert!(!fixture.store.get(name).unwrap().sealed);
    let busy = fixture.store.seal(name);
    assert!(matches!(busy, Err(MorselError::Busy(_))), "{busy:?}");
    drop(writer);
    assert!(fixture.store.seal(name).unwrap().sealed);
    assert!(fixture.store.seal(name).unwrap().sealed);
    fixture.store.remove(name).unwrap();
    let gone = fixture.store.get(name);
    assert!(matches!(gone, Err(MorselError::NoSuch(_))), "{gone:?}");
}

#[test]
fn a_lock_is_waited_for_and_then_named() {
    let fixture = Fixture::new();
    let own = fixture.own();
    let lock = own.open().unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let path = fixture.file("model", b"weights");
    let source = Source::open(&path).unwrap();
    let mut tries = 0;
    let put = fixture.store.put(Request {
        source: &source,
        name: None,
        limit: None,
        wait: Duration::from_millis(50),
        progress: &mut |done| {
            assert_eq!(done, None);
            tries += 1;
            true
        },
    });
    let error = put.unwrap_err();
    assert!(matches!(error, MorselError::Locked { .. }), "{error}");
    let error = error.to_string();
    assert!(
        error.starts_with(&own.path.display().to_string()),
        "{error}"
    );
    let holder = format!("process {} (", std::process::id());
    assert!(error.contains(&holder) && error.contains("50ms"), "{error}");
    assert!(tries > 0);
    drop(lock);
    assert!(fixture.put(&path).unwrap().filled);
}

/// A write through a mapping that was already written to changes no time of the file.
#[test]
fn a_mapping_that_is_written_to_meanwhile_is_seen() {
    const SIZE: usize = 16 << 20;
    /// Between the sampled blocks.
    const PLACE: usize = (1 << 20) + 100_000;
    let fixture = Fixture::new();
    // On a disk, writeback updates the time.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("model");
    fs::write(&path, vec![1; SIZE]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping of our own file.
    let start = unsafe {
        mmap(
            ptr::null_mut(),
            SIZE,
            protection,
            MapFlags::SHARED,
            &file,
            0,
        )
    };
    let start = start.unwrap().cast::<u8>();
    // SAFETY: inside the mapping.
    let write = |byte| unsafe { start.add(PLACE).write_volatile(byte) };
    write(2);
    let source = Source::open(&path).unwrap();
    let put = fixture.put_watched(&source, &mut |done| {
        // After the copy.
        if done.is_some_and(|done| done > (PLACE + (4 << 20)) as u64) {
            write(3);
        }
        true
    });
    assert!(source.identity.may_be(&fs::metadata(&path).unwrap()));
    assert!(matches!(put, Err(MorselError::Changing(_))), "{put:?}");
    assert_eq!(fixture.names(), [""; 0]);
    // SAFETY: no reference to it remains.
    unsafe { munmap(start.cast(), SIZE) }.unwrap();
    drop(file);
    let copy = fixture.put(&path).unwrap().morsel;
    let content = fs::read(&path).unwrap();
    let digest = blake3::hash(&content).to_hex();
    assert_eq!(copy.digest.as_deref(), Some(digest.as_str()));
    assert_eq!(fs::read(copy.path).unwrap(), content);
}

#[test]
fn directories_on_disks_hold_no_morsels() {
    let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    assert!(matches!(error, MorselError::NotMemory { .. }), "{error}");
}

#[test]
fn odd_sources_are_refused() {
    let fixture = Fixture::new();
    for path in [
        Path::new("/dev/null"),
        fixture.files.path(),
        &fixture.file("empty", b""),
    ] {
        let error = Source::open(path).unwrap_err();
        assert!(matches!(error, MorselError::Unfit { .. }), "{error}");
    }
}
