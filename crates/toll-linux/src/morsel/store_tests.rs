// SPDX-License-Identifier: MIT OR Apache-2.0
use std::io::Write;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use tempfile::TempDir;
use toll_model::PAGE;

use super::*;

/// A store on tmpfs, and a folder with files on the disk.
struct Bench {
    store: Store,
    files: TempDir,
    _folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        Bench {
            store: Store::open(folder.path()).unwrap(),
            files: tempfile::tempdir().unwrap(),
            _folder: folder,
        }
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.files.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn put(&self, path: &Path) -> Result<Put, MorselError> {
        self.put_within(path, None, None)
    }

    fn put_within(
        &self,
        path: &Path,
        name: Option<&str>,
        limit: Option<u64>,
    ) -> Result<Put, MorselError> {
        let source = Source::open(path)?;
        self.store.put(Request {
            source: &source,
            name: name.map(OsStr::new),
            limit,
            progress: &mut |_| true,
        })
    }

    fn names(&self) -> Vec<String> {
        let name = |morsel: Morsel| morsel.name.into_string().unwrap();
        self.store.list().unwrap().into_iter().map(name).collect()
    }
}

#[test]
fn a_copy_is_made_once() {
    let bench = Bench::new();
    let path = bench.file("model", b"weights");
    let first = bench.put(&path).unwrap();
    assert!(first.filled && first.removed.is_empty());
    let morsel = &first.morsel;
    assert_eq!(fs::read(&morsel.path).unwrap(), b"weights");
    assert_eq!(morsel.source.as_deref(), Some(path.as_os_str()));
    assert_eq!((morsel.size, morsel.sealed), (7, true));
    assert_eq!(
        fs::metadata(&morsel.path).unwrap().modified().unwrap(),
        fs::metadata(&path).unwrap().modified().unwrap()
    );
    let second = bench.put(&path).unwrap();
    assert!(!second.filled);
    assert_eq!(second.morsel.inode, morsel.inode);
    assert_eq!(bench.names(), ["model"]);
}

#[test]
fn a_file_that_changed_is_copied_again() {
    let bench = Bench::new();
    let path = bench.file("model", b"weights");
    let old = bench.put(&path).unwrap().morsel;
    bench.file("model", b"Weights");
    assert!(
        bench
            .store
            .find(&Source::open(&path).unwrap().identity)
            .is_none()
    );
    let new = bench.put(&path).unwrap();
    assert!(new.filled);
    assert_eq!(new.removed[0].inode, old.inode);
    assert_eq!(fs::read(&new.morsel.path).unwrap(), b"Weights");
    assert_eq!(bench.names(), ["model"]);
    // Another file under the old path.
    fs::remove_file(&path).unwrap();
    bench.file("model", b"Weights");
    assert!(bench.put(&path).unwrap().filled);
    assert_eq!(bench.names(), ["model"]);
}

#[test]
fn two_files_of_one_name() {
    let bench = Bench::new();
    let (one, other) = (bench.file("a/model", b"1"), bench.file("b/model", b"2"));
    bench.put(&one).unwrap();
    let morsel = bench.put(&other).unwrap().morsel;
    assert!(morsel.name.to_string_lossy().starts_with("model~"));
    assert_eq!(fs::read(&morsel.path).unwrap(), b"2");
    let taken = bench.put_within(&bench.file("c", b"3"), Some("model"), None);
    assert!(
        matches!(&taken, Err(MorselError::Taken { of, .. }) if one == Path::new(of)),
        "{taken:?}"
    );
    // Nothing was copied for that.
    assert_eq!(bench.names().len(), 2);
    let named = bench.put_within(&one, Some("first"), None).unwrap();
    assert_eq!(
        (named.filled, &*named.morsel.name),
        (false, OsStr::new("first"))
    );
    // Two names are one morsel.
    let morsels = bench.store.list().unwrap();
    assert_eq!(morsels.len(), 3);
    assert_eq!(bench.store.room(&morsels).unwrap().used, 2 * PAGE);
}

#[test]
fn nothing_is_left_of_an_interrupted_copy() {
    let bench = Bench::new();
    let path = bench.file("model", &vec![1; 16 << 20]);
    let source = Source::open(&path).unwrap();
    let ended = bench.store.put(Request {
        source: &source,
        name: None,
        limit: None,
        progress: &mut |done| done.unwrap_or(0) < 5 << 20,
    });
    assert!(matches!(ended, Err(MorselError::Interrupted)), "{ended:?}");
    assert_eq!(bench.names(), [""; 0]);
    assert_eq!(bench.store.records().len(), 0);
}

#[test]
fn a_file_that_changes_meanwhile_is_not_kept() {
    let bench = Bench::new();
    let path = bench.file("model", &vec![1; 16 << 20]);
    let source = Source::open(&path).unwrap();
    let mut writer = OpenOptions::new().write(true).open(&path).unwrap();
    let ended = bench.store.put(Request {
        source: &source,
        name: None,
        limit: None,
        progress: &mut |_| writer.write_all(b"2").is_ok(),
    });
    assert!(matches!(ended, Err(MorselError::Changing(_))), "{ended:?}");
    assert_eq!(bench.names(), [""; 0]);
}

#[test]
fn copies_of_one_file_at_once_are_one() {
    let bench = Bench::new();
    let path = bench.file("model", &vec![1; 32 << 20]);
    let filled = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                filled.fetch_add(bench.put(&path).unwrap().filled.into(), Relaxed);
            });
        }
    });
    assert_eq!(filled.into_inner(), 1);
    assert_eq!(bench.names(), ["model"]);
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let bench = Bench::new();
    let put =
        |name: &str, limit| bench.put_within(&bench.files.path().join(name), None, Some(limit));
    for name in ["first", "second", "third", "fourth", "fifth"] {
        bench.file(name, name.as_bytes());
    }
    for name in ["first", "second", "third"] {
        put(name, 3 * PAGE).unwrap();
    }
    let set_used = |name: &str, seconds| {
        let times = fs::FileTimes::new()
            .set_accessed(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let file = File::open(bench.store.folder.join(name)).unwrap();
        file.set_times(times).unwrap();
        file
    };
    set_used("first", 1);
    set_used("third", 2);
    let in_use = set_used("second", 0);
    // Asked for again.
    put("first", 3 * PAGE).unwrap();
    let removed = put("fourth", 3 * PAGE).unwrap().removed;
    assert_eq!(removed.len(), 1);
    assert_eq!(removed[0].name, "third");
    assert_eq!(bench.names(), ["first", "fourth", "second"]);
    let full = put("fifth", PAGE);
    assert!(matches!(full, Err(MorselError::Full { .. })), "{full:?}");
    assert_eq!(bench.names(), ["first", "fourth", "second"]);
    drop(in_use);
    assert_eq!(put("fifth", PAGE).unwrap().removed.len(), 3);
    assert_eq!(bench.names(), ["fifth"]);
}

#[test]
fn what_only_looks_like_a_copy_is_not_served() {
    let bench = Bench::new();
    let (one, other) = (bench.file("one", b"one"), bench.file("other", b"two"));
    let foreign = bench.put(&one).unwrap().morsel;
    let source = Source::open(&other).unwrap();
    fs::hard_link(&foreign.path, bench.store.record_path(&source)).unwrap();
    assert!(bench.store.find(&source.identity).is_none());
    // One that its owner may write to again.
    let writable = Permissions::from_mode(0o644);
    fs::set_permissions(&foreign.path, writable).unwrap();
    let identity = Source::open(&one).unwrap().identity;
    assert!(bench.store.find(&identity).is_none());
}

#[test]
fn sealing_waits_for_no_writer() {
    let bench = Bench::new();
    let path = bench.store.folder.join("made");
    let writer = File::create(&path).unwrap();
    let name = OsStr::new("made");
    assert!(!bench.store.get(name).unwrap().sealed);
    let busy = bench.store.seal(name);
    assert!(matches!(busy, Err(MorselError::Busy(_))), "{busy:?}");
    drop(writer);
    assert!(bench.store.seal(name).unwrap().sealed);
    assert!(bench.store.seal(name).unwrap().sealed);
    bench.store.remove(name).unwrap();
    let gone = bench.store.get(name);
    assert!(matches!(gone, Err(MorselError::NoSuch(_))), "{gone:?}");
}

#[test]
fn a_copy_is_as_readable_as_its_source() {
    let bench = Bench::new();
    let path = bench.file("secret", b"s");
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let morsel = bench.put(&path).unwrap().morsel;
    assert_eq!(fs::metadata(&morsel.path).unwrap().mode() & 0o777, 0o440);
}

#[test]
fn records_keep_the_end_of_long_paths() {
    let identity = Identity {
        device: 1,
        inode: 2,
        size: 3,
        seconds: 4,
        nanoseconds: 5,
        changed_seconds: 6,
        changed_nanoseconds: 7,
        sum: 8,
    };
    let back = |path: &str| {
        let name = record_name(&identity, u32::MAX, Path::new(path));
        assert!(name.len() <= NAME_MAX, "{name:?}");
        let cut = name
            .as_bytes()
            .iter()
            .position(|byte| *byte == b'=')
            .unwrap();
        unescape(&name.as_bytes()[cut + 1..]).into_string().unwrap()
    };
    assert_eq!(back("/models/50%=x"), "/models/50%=x");
    let long = back(&format!("/{}/model", "%/".repeat(200)));
    assert!(
        long.starts_with("...") && long.ends_with("%//model"),
        "{long}"
    );
}

/// What is written to a mapping that was written to before changes no time of the file.
#[test]
fn a_mapping_that_is_written_to_meanwhile_is_seen() {
    const SIZE: usize = 16 << 20;
    /// Between the blocks that are sampled.
    const PLACE: usize = (1 << 20) + 100_000;
    let bench = Bench::new();
    // On a disk, writing back is a change of its own.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("model");
    fs::write(&path, vec![1; SIZE]).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping of a file of our own.
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
    let put = bench.store.put(Request {
        source: &source,
        name: None,
        limit: None,
        progress: &mut |done| {
            // Behind the copy.
            if done.is_some_and(|done| done > (PLACE + (4 << 20)) as u64) {
                write(3);
            }
            true
        },
    });
    assert!(source.identity.may_be(&fs::metadata(&path).unwrap()));
    assert!(matches!(put, Err(MorselError::Changing(_))), "{put:?}");
    assert_eq!(bench.names(), [""; 0]);
    // SAFETY: nothing refers to it any more.
    unsafe { munmap(start.cast(), SIZE) }.unwrap();
    drop(file);
    let copy = bench.put(&path).unwrap().morsel;
    let content = fs::read(&path).unwrap();
    assert_eq!(fs::read(copy.path).unwrap(), content);
}

#[test]
fn folders_on_disks_hold_no_morsels() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, MorselError::NotMemory { .. }), "{error}");
}

#[test]
fn odd_sources_are_refused() {
    let bench = Bench::new();
    for path in [
        Path::new("/dev/null"),
        bench.files.path(),
        &bench.file("empty", b""),
    ] {
        let error = Source::open(path).unwrap_err();
        assert!(matches!(error, MorselError::Unfit { .. }), "{error}");
    }
}
