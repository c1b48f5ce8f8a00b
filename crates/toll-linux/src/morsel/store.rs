// SPDX-License-Identifier: MIT OR Apache-2.0
//! The morsels of a directory.
//!
//! The directory contains the morsels by name; [`super::hidden`] has the source file of each copy.
//! Users trust their own copies and root's.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{
    SealFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fcntl_get_seals, futimens,
};

use super::hidden::{HIDDEN, Hidden};
use super::identity::sample;
use super::place::user;
use super::record::{NAME_MAX, Record, key};
use super::{Backing, Identity, Kind, MorselError, at};
use crate::Root;

/// A directory of morsels.
#[derive(Debug, Clone)]
pub struct Store {
    pub directory: PathBuf,
    pub backing: Backing,
}

/// A file in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Morsel {
    pub name: OsString,
    pub path: PathBuf,
    pub device: u64,
    pub inode: u64,
    /// Bytes of content.
    pub size: u64,
    /// Bytes of memory.
    pub allocated: u64,
    /// Whether it is immutable.
    pub sealed: bool,
    /// Owner.
    pub owner: u32,
    /// Permission bits.
    pub mode: u32,
    /// The source file and its state; `None` for files that are not copies, and for other users'
    /// copies: only root and the user that made a copy can know it.
    pub identity: Option<Identity>,
    /// BLAKE3 of the content at the time of the copy, hexadecimal.
    pub digest: Option<String>,
    /// Path of the source, cut at the front (`...`) if it is long.
    pub source: Option<OsString>,
    /// Time of the last mapping or read.
    pub used: SystemTime,
}

impl Morsel {
    /// Whether the content can be trusted: created by root or by this user.
    fn is_trusted(&self) -> bool {
        [0, user()].contains(&self.owner)
    }

    /// Whether a path is one of its names.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|it| (it.dev(), it.ino()) == (self.device, self.inode))
    }
}

impl Store {
    /// Opens a directory on a memory file system.
    ///
    /// # Errors
    /// As [`Backing::of`].
    pub fn open(directory: &Path) -> Result<Store, MorselError> {
        let directory = fs::canonicalize(directory).map_err(at(directory))?;
        Ok(Store {
            backing: Backing::of(&Root::system(), &directory)?,
            directory,
        })
    }

    /// Returns all morsels by name.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn list(&self) -> Result<Vec<Morsel>, MorselError> {
        let records = self.records();
        let mut morsels: Vec<Morsel> = Vec::new();
        for path in files(&self.directory)? {
            if let Some(morsel) = self.look(path, &records) {
                morsels.push(morsel);
            }
        }
        // A copy that was interrupted between its two names, or that lost the one in the directory.
        for record in &records {
            if !morsels.iter().any(|it| it.inode == record.inode) {
                morsels.extend(self.look(record.path.clone(), &records));
            }
        }
        morsels.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(morsels)
    }

    /// Returns the morsel with this name or path.
    ///
    /// # Errors
    /// No such morsel.
    pub fn get(&self, name: &OsStr) -> Result<Morsel, MorselError> {
        check_name(name)?;
        let path = self.directory.join(name);
        self.look(path.clone(), &self.records())
            .ok_or(MorselError::NoSuch(path))
    }

    /// Returns a trusted morsel that holds a file in this state, if there is one.
    pub fn find(&self, identity: &Identity) -> Option<Morsel> {
        self.find_open(identity).map(|(_, morsel)| morsel)
    }

    /// Opens a morsel that holds a file in this state.
    pub(super) fn find_open(&self, identity: &Identity) -> Option<(File, Morsel)> {
        let hidden = Hidden::open(&self.directory).ok()??;
        let own = hidden.own().into_iter().flat_map(|own| {
            let records = own.records().into_iter();
            let of_this = records.filter(|record| record.identity == *identity);
            let open = |record: Record| Some((own.open_file(&record.name)?, record));
            of_this.filter_map(open).collect::<Vec<_>>()
        });
        let mut found = own.filter_map(|(file, record)| {
            let morsel = self.open_morsel(&file, record.path.clone(), Some(&record))?;
            Some((file, morsel))
        });
        let shared = || {
            let (shared, key) = (hidden.shared()?, key(identity));
            let file = shared.open_file(&key)?;
            let mut morsel = self.open_morsel(&file, shared.path.join(key), None)?;
            morsel.identity = Some(*identity);
            morsel.size = identity.size;
            Some((file, morsel))
        };
        let holds = |(file, morsel): &(File, Morsel)| {
            mark_used(file);
            morsel.sealed
                && morsel.is_trusted()
                && sample(file, identity.size).is_ok_and(|sum| sum == identity.sum)
        };
        found.find(holds).or_else(|| shared().filter(holds))
    }

    /// Removes a morsel: existing mappings stay valid, and the memory is freed with the last one.
    ///
    /// # Errors
    /// No such morsel, or it may not be removed.
    pub fn remove(&self, name: &OsStr) -> Result<Morsel, MorselError> {
        let morsel = self.get(name)?;
        self.unlink(&morsel)?;
        Ok(morsel)
    }

    /// Removes all names of a morsel, its records last: if the first cannot be removed, nothing is.
    pub(super) fn unlink(&self, morsel: &Morsel) -> Result<(), MorselError> {
        let is_name = |path: &PathBuf| morsel.is_at(path);
        for path in files(&self.directory)?.into_iter().filter(is_name) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(&morsel.path)(error));
                }
                _ => {}
            }
        }
        match Hidden::open(&self.directory) {
            Ok(Some(hidden)) => hidden.unlink(morsel.device, morsel.inode),
            // It contains none of our files.
            Ok(None) | Err(MorselError::Foreign { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the entry at a path if it is a file.
    pub(super) fn look(&self, path: PathBuf, records: &[Record]) -> Option<Morsel> {
        let meta = fs::symlink_metadata(&path).ok()?;
        let is = |record: &&Record| (record.device, record.inode) == (meta.dev(), meta.ino());
        let record = records.iter().find(is);
        let seals = || File::open(&path).ok();
        self.describe(&meta, seals, path.clone(), record)
    }

    /// Describes an open file.
    fn open_morsel(&self, file: &File, path: PathBuf, record: Option<&Record>) -> Option<Morsel> {
        let meta = file.metadata().ok()?;
        self.describe(&meta, || file.try_clone().ok(), path, record)
    }

    fn describe(
        &self,
        meta: &Metadata,
        open: impl FnOnce() -> Option<File>,
        path: PathBuf,
        record: Option<&Record>,
    ) -> Option<Morsel> {
        if !meta.is_file() {
            return None;
        }
        let identity = record.map(|record| record.identity);
        Some(Morsel {
            name: path.strip_prefix(&self.directory).ok()?.into(),
            device: meta.dev(),
            inode: meta.ino(),
            size: identity.map_or(meta.len(), |identity| identity.size),
            allocated: meta.blocks() * 512,
            sealed: self.is_sealed(meta, open),
            owner: meta.uid(),
            mode: meta.mode() & 0o777,
            identity,
            digest: record.map(|record| record.digest.clone()),
            source: record.map(|record| record.source.clone()),
            used: meta.accessed().unwrap_or(SystemTime::UNIX_EPOCH),
            path,
        })
    }

    fn is_sealed(&self, meta: &Metadata, open: impl FnOnce() -> Option<File>) -> bool {
        let by_mode = meta.mode() & 0o222 == 0;
        match self.backing.kind {
            Kind::Morselfs => open()
                .and_then(|file| fcntl_get_seals(&file).ok())
                .map_or(by_mode, |seals| seals.contains(SealFlags::WRITE)),
            Kind::Tmpfs | Kind::Hugetlbfs => by_mode,
        }
    }

    /// Returns the records that we may read.
    pub(super) fn records(&self) -> Vec<Record> {
        let hidden = Hidden::open(&self.directory).ok().flatten();
        let places = hidden.map(|hidden| hidden.all()).unwrap_or_default();
        places.iter().flat_map(|place| place.records()).collect()
    }
}

pub(super) fn check_name(name: &OsStr) -> Result<(), MorselError> {
    let wrong = |why| {
        let name = name.to_string_lossy().into_owned();
        Err(MorselError::Name { name, why })
    };
    match name.as_bytes() {
        b"" => wrong("it is empty"),
        b"." | b".." => wrong("it names a directory"),
        name if name.contains(&b'/') => wrong("it has a slash in it"),
        name if name.len() > NAME_MAX => wrong("it is longer than 255 bytes"),
        _ => Ok(()),
    }
}

/// Returns the paths of a directory's entries, except the hidden directory.
pub(super) fn files(directory: &Path) -> Result<Vec<PathBuf>, MorselError> {
    let entries = fs::read_dir(directory).map_err(at(directory))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| !path.ends_with(HIDDEN)).collect())
}

/// Records a use, even if the mount updates access times only daily; not possible for another
/// user's morsel.
fn mark_used(file: &File) {
    let times = Timestamps {
        last_access: now(),
        last_modification: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
    };
    let _ = futimens(file, &times);
}

pub(super) fn now() -> Timespec {
    Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    }
}
