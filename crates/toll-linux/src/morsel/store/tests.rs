// SPDX-License-Identifier: MIT OR Apache-2.0
use std::io::Write;
use std::os::unix::fs::{chown, symlink};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use rustix::fs::{FlockOperation, XattrFlags, flock, fsetxattr};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use tempfile::TempDir;
use toll_model::PAGE;

use super::*;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Whether copies can be opened to others on this machine.
fn may_share() -> bool {
    let may = readers::sees_what_all_see();
    if let Err(why) = &may {
        eprintln!("skipped: {why}");
    }
    may.is_ok()
}

/// Whether the tests run as root, and may change the owner of files.
fn is_root() -> bool {
    let is_root = user() == 0;
    if !is_root {
        eprintln!("skipped: not root");
    }
    is_root
}

/// Longer than any copy in these tests takes.
const WAIT: Duration = Duration::from_secs(600);

/// A store on tmpfs, and a directory with files on disk.
struct Fixture {
    store: Store,
    files: TempDir,
    _directory: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let files = tempfile::tempdir().unwrap();
        set_mode(files.path(), 0o755);
        Fixture {
            store: Store::open(directory.path()).unwrap(),
            files,
            _directory: directory,
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
            wait: WAIT,
            progress: &mut |_| true,
        })
    }

    /// Our own records directory.
    fn own(&self) -> records::Place {
        let hidden = Hidden::make(&self.store.directory).unwrap();
        hidden.make_own().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let name = |morsel: Morsel| morsel.name.into_string().unwrap();
        self.store.list().unwrap().into_iter().map(name).collect()
    }
}

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
    let ended = fixture.store.put(Request {
        source: &source,
        name: None,
        limit: None,
        wait: WAIT,
        progress: &mut |done| done.unwrap_or(0) < 5 << 20,
    });
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
    let ended = fixture.store.put(Request {
        source: &source,
        name: None,
        limit: None,
        wait: WAIT,
        progress: &mut |_| writer.write_all(b"2").is_ok(),
    });
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
fn what_only_looks_like_a_copy_is_not_served() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.file("one", b"one"), fixture.file("other", b"two"));
    let foreign = fixture.put(&one).unwrap().morsel;
    let source = Source::open(&other).unwrap();
    let own = fixture.own();
    let record = records::record_name(&source.identity, &"0".repeat(64), &source.path);
    fs::hard_link(&foreign.path, own.path.join(record)).unwrap();
    assert!(fixture.store.find(&source.identity).is_none());
    // A copy that its owner can write to again.
    let writable = Permissions::from_mode(0o644);
    fs::set_permissions(&foreign.path, writable).unwrap();
    let identity = Source::open(&one).unwrap().identity;
    assert!(fixture.store.find(&identity).is_none());
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
fn a_copy_is_as_readable_as_its_source_can_be_reached() {
    let fixture = Fixture::new();
    if !may_share() {
        return;
    }
    let path = fixture.file("directory/model", b"weights");
    let directory = path.parent().unwrap();
    for (of_directory, of_file, copy) in [
        (0o755, 0o644, 0o444),
        (0o755, 0o600, 0o400),
        (0o700, 0o644, 0o400),
        (0o711, 0o644, 0o444),
        (0o755, 0o640, 0o440),
        (0o755, 0o604, 0o400),
    ] {
        set_mode(directory, of_directory);
        set_mode(&path, of_file);
        let put = fixture.put(&path).unwrap();
        // The mode is part of the file's state.
        assert!(put.filled);
        assert_eq!(put.morsel.mode, copy, "{of_directory:o} {of_file:o}");
        let is_less = copy & 0o044 != of_file & 0o044;
        assert_eq!(put.private.is_some(), is_less, "{:?}", put.private);
    }
}

#[test]
fn a_copy_is_for_the_group_of_its_source_and_no_other() {
    let fixture = Fixture::new();
    if !may_share() || !is_root() {
        return;
    }
    let path = fixture.file("model", b"weights");
    set_mode(&path, 0o640);
    chown(&path, None, Some(7)).unwrap();
    let put = fixture.put(&path).unwrap();
    let meta = fs::metadata(&put.morsel.path).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.gid()), (0o440, 7));
}

/// `user:65534:r--` on a file without group permissions: its mode shows the mask, 0640.
#[test]
fn a_list_keeps_a_copy_private() {
    let fixture = Fixture::new();
    let path = fixture.file("model", b"weights");
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (1u16, 6u16, u32::MAX),
        (2, 4, 65534),
        (4, 0, u32::MAX),
        (0x10, 4, u32::MAX),
        (0x20, 0, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let file = File::open(&path).unwrap();
    let set = fsetxattr(&file, "system.posix_acl_access", &list, XattrFlags::empty());
    if set == Err(Errno::OPNOTSUPP) {
        eprintln!("skipped: no access control lists on this file system");
        return;
    }
    set.unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
    let put = fixture.put(&path).unwrap();
    assert_eq!(put.morsel.mode, 0o400);
    if may_share() {
        let why = put.private.unwrap();
        assert!(why.contains("has an access control list"), "{why}");
    }
}

#[test]
fn a_copy_follows_when_the_way_to_its_source_is_closed() {
    let fixture = Fixture::new();
    let path = fixture.file("directory/model", b"weights");
    fixture.put(&path).unwrap();
    set_mode(path.parent().unwrap(), 0o700);
    let put = fixture.put(&path).unwrap();
    assert!(!put.filled);
    let mode = fs::metadata(&put.morsel.path).unwrap().mode();
    assert_eq!(mode & 0o777, 0o400);
}

#[test]
fn only_its_owner_learns_of_which_file_a_copy_is() {
    let fixture = Fixture::new();
    set_mode(&fixture.store.directory, 0o1777);
    fixture
        .put(&fixture.file("secret/model", b"weights"))
        .unwrap();
    let mut open = vec![fixture.store.directory.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            assert!(!name.contains("secret"), "{name}");
            let meta = entry.metadata().unwrap();
            if meta.is_dir() && meta.mode() & 0o004 != 0 {
                open.push(entry.path());
            }
        }
    }
    assert_eq!(fs::metadata(fixture.own().path).unwrap().mode() & 0o077, 0);
}

#[test]
fn a_hidden_directory_of_somebody_else_is_refused_by_name() {
    let fixture = Fixture::new();
    let path = fixture.file("model", b"weights");
    let hidden = fixture.store.directory.join(HIDDEN);
    let refused = |says: &str| {
        let error = fixture.put(&path).unwrap_err();
        assert!(matches!(error, MorselError::Foreign { .. }), "{error}");
        let error = error.to_string();
        let name = hidden.display().to_string();
        assert!(error.starts_with(&name) && error.contains(says), "{error}");
        assert_eq!(fixture.names(), [""; 0]);
    };
    symlink(fixture.files.path(), &hidden).unwrap();
    refused("is a symbolic link");
    fs::remove_file(&hidden).unwrap();
    fs::write(&hidden, b"").unwrap();
    refused("is a file");
    fs::remove_file(&hidden).unwrap();
    fs::create_dir(&hidden).unwrap();
    set_mode(&hidden, 0o777);
    refused("no sticky bit");
    if is_root() {
        set_mode(&hidden, 0o755);
        chown(&hidden, Some(65534), None).unwrap();
        refused("belongs to user 65534");
    }
}

#[test]
fn a_name_that_somebody_else_took_blocks_nobody() {
    let fixture = Fixture::new();
    if !is_root() {
        return;
    }
    let hidden = fixture.store.directory.join(HIDDEN);
    fs::create_dir(&hidden).unwrap();
    set_mode(&hidden, 0o1777);
    let taken = hidden.join("0");
    fs::create_dir(&taken).unwrap();
    chown(&taken, Some(65534), None).unwrap();
    let path = fixture.file("model", b"weights");
    assert!(fixture.put(&path).unwrap().filled);
    assert!(!fixture.put(&path).unwrap().filled);
    assert_eq!(fs::read_dir(&taken).unwrap().count(), 0);
    let source = fixture.store.list().unwrap().remove(0).source;
    assert_eq!(source.as_deref(), Some(path.as_os_str()));
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
    let put = fixture.store.put(Request {
        source: &source,
        name: None,
        limit: None,
        wait: WAIT,
        progress: &mut |done| {
            // After the copy.
            if done.is_some_and(|done| done > (PLACE + (4 << 20)) as u64) {
                write(3);
            }
            true
        },
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
