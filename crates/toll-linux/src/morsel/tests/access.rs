// SPDX-License-Identifier: MIT OR Apache-2.0
//! Users that may read a copy, and what other users can do.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use rustix::fs::{XattrFlags, fsetxattr};
use rustix::io::Errno;

use super::{Fixture, is_root, may_share, set_mode};
use crate::morsel::hidden::HIDDEN;
use crate::morsel::record::record_name;
use crate::morsel::{MorselError, Source};

#[test]
fn what_only_looks_like_a_copy_is_not_served() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.file("one", b"one"), fixture.file("other", b"two"));
    let foreign = fixture.put(&one).unwrap().morsel;
    let source = Source::open(&other).unwrap();
    let own = fixture.own();
    let record = record_name(&source.identity, &"0".repeat(64), &source.path);
    fs::hard_link(&foreign.path, own.path.join(record)).unwrap();
    assert!(fixture.store.find(&source.identity).is_none());
    // A copy that its owner can write to again.
    let writable = Permissions::from_mode(0o644);
    fs::set_permissions(&foreign.path, writable).unwrap();
    let identity = Source::open(&one).unwrap().identity;
    assert!(fixture.store.find(&identity).is_none());
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
