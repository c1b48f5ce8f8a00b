// SPDX-License-Identifier: MIT OR Apache-2.0
//! The morsels of a directory.
//!
//! The directory contains the morsels by name; [`super::records`] has the source file of each copy.
//! Users trust their own copies and root's.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    SealFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fcntl_add_seals, fcntl_get_seals,
    futimens,
};
use rustix::io::Errno;

use super::fill::{Copied, Copy};
use super::identity::sample;
use super::readers::{self, Readers};
use super::records::{self, HIDDEN, Hidden, NAME_MAX, Record, is_source, is_there, key, user};
use super::room::lease;
use super::{Backing, Identity, Kind, MorselError, Source, at, lock};
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
}

/// A request for a copy.
pub struct Request<'a> {
    pub source: &'a Source,
    /// Name in the directory; default: the source's own.
    pub name: Option<&'a OsStr>,
    /// Limit of all morsels together, bytes.
    pub limit: Option<u64>,
    /// Maximum wait for another copy of the same user.
    pub wait: Duration,
    /// Receives the number of bytes copied, or `None` while waiting for another copy; returns false
    /// to stop.
    pub progress: &'a mut dyn FnMut(Option<u64>) -> bool,
}

/// Result of [`Store::put`].
#[derive(Debug, Clone)]
pub struct Put {
    pub morsel: Morsel,
    /// False if the copy existed already.
    pub filled: bool,
    /// Whether the copy bypassed the page cache.
    pub direct: bool,
    /// Morsels that were removed for space or because they were out of date.
    pub removed: Vec<Morsel>,
    /// Why fewer users may read the copy than the source's mode allows; `None` if there is no
    /// difference.
    pub private: Option<String>,
}

/// A copy that has no name yet.
struct Filled {
    file: File,
    direct: bool,
    digest: String,
    readers: Readers,
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
    fn find_open(&self, identity: &Identity) -> Option<(File, Morsel)> {
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

    /// Copies a file into the store, unless a copy exists.
    ///
    /// # Errors
    /// No space, a name that is taken, an untrusted hidden directory, another copy that takes too
    /// long, an interruption, or a system error. Nothing is left behind.
    pub fn put(&self, request: Request) -> Result<Put, MorselError> {
        let Request {
            source,
            name,
            limit,
            wait,
            progress,
        } = request;
        name.map_or(Ok(()), check_name)?;
        if let Some(put) = self.there(source, name)? {
            return Ok(put);
        }
        let hidden = Hidden::make(&self.directory)?;
        let own = hidden.make_own()?;
        // One copy at a time for each user: a second request for the same file finds the copy
        // afterwards.
        let _lock = lock::take(&own, wait, progress)?;
        if let Some(put) = self.there(source, name)? {
            return Ok(put);
        }
        let mut removed = self.remove_stale(source)?;
        if let Some(name) = name.filter(|name| self.directory.join(name).exists()) {
            return Err(self.taken(name));
        }
        let size = source
            .identity
            .size
            .next_multiple_of(self.backing.smallest_page());
        removed.extend(self.make_room(size, limit)?);
        let filled = self.fill(source, progress)?;
        let record = records::record_name(&source.identity, &filled.digest, &source.path);
        own.link(&filled.file, &record)?;
        let mut readers = filled.readers;
        self.share(&hidden, &filled.file, source, &mut readers);
        let path = own.path.join(record);
        let morsel = self
            .look(path.clone(), &self.records())
            .ok_or(MorselError::NoSuch(path))?;
        Ok(Put {
            morsel: self.name(&filled.file, morsel, source, name)?,
            filled: true,
            direct: filled.direct,
            removed,
            private: readers.why_not,
        })
    }

    /// Returns the existing copy.
    fn there(&self, source: &Source, name: Option<&OsStr>) -> Result<Option<Put>, MorselError> {
        let Some((file, morsel)) = self.find_open(&source.identity) else {
            return Ok(None);
        };
        let mut private = None;
        if morsel.owner == user() {
            // Directories on the path may have been closed to others meanwhile.
            let readers = readers::of(source);
            let mode = morsel.mode & readers.mode();
            if mode != morsel.mode {
                file.set_permissions(Permissions::from_mode(mode))
                    .map_err(at(&morsel.path))?;
            }
            private = readers.why_not;
        }
        Ok(Some(Put {
            morsel: self.name(&file, morsel, source, name)?,
            filled: false,
            direct: false,
            removed: Vec::new(),
            private,
        }))
    }

    /// Publishes root's copy to other users, if they may read it.
    fn share(&self, hidden: &Hidden, file: &File, source: &Source, readers: &mut Readers) {
        if user() != 0 || !(readers.group || readers.others) {
            return;
        }
        let key = key(&source.identity);
        let shared = hidden.shared().map(|shared| match shared.link(file, &key) {
            // Left by a copy that was damaged or is no longer sealed.
            Err(error) if is_there(&error) => shared.replace(file, &key),
            result => result,
        });
        let failed = match shared {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => "root's directory for it does not exist".to_owned(),
        };
        readers.why_not = Some(format!("others cannot find it: {failed}"));
    }

    /// Creates a nameless, sealed copy.
    fn fill(
        &self,
        source: &Source,
        progress: &mut dyn FnMut(Option<u64>) -> bool,
    ) -> Result<Filled, MorselError> {
        // A write through a mapping that was already written to does not update the change time.
        let is_unwritten = is_unwritten(&source.file);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(&self.directory)
            .map_err(at(&self.directory))?;
        let size = source.identity.size;
        file.set_len(match self.backing.kind {
            Kind::Hugetlbfs => size.next_multiple_of(self.backing.smallest_page()),
            Kind::Morselfs | Kind::Tmpfs => size,
        })
        .map_err(at(&self.directory))?;
        let copy = Copy {
            source: &source.file,
            source_path: &source.path,
            morsel: &file,
            directory: &self.directory,
            size,
            backing: &self.backing,
            has_room: &|bytes| self.has_room(bytes),
        };
        let Copied { direct, digest } = copy.run(&mut |done| progress(Some(done)))?;
        let changing = || MorselError::Changing(source.path.clone());
        if !is_unwritten && copy.digest_again(&mut |done| progress(Some(done)))? != digest {
            return Err(changing());
        }
        let is = Identity::of(&source.file).map_err(at(&source.path))?;
        if is != source.identity {
            return Err(changing());
        }
        let times = Timestamps {
            last_access: now(),
            last_modification: Timespec {
                tv_sec: is.seconds,
                tv_nsec: is.nanoseconds.into(),
            },
        };
        futimens(&file, &times).map_err(at(&self.directory))?;
        let mut readers = readers::of(source);
        readers::give_group(&file, source, &mut readers);
        self.seal_file(&file, &self.directory, readers.mode())?;
        Ok(Filled {
            file,
            direct,
            digest: digest.to_hex().to_string(),
            readers,
        })
    }

    /// Names a copy in the directory: the requested name or the source's; a part of its checksum is
    /// added if another morsel has that name.
    fn name(
        &self,
        file: &File,
        morsel: Morsel,
        source: &Source,
        asked: Option<&OsStr>,
    ) -> Result<Morsel, MorselError> {
        let known = |path: PathBuf| self.look_as(path, &morsel);
        let same = |path: &PathBuf| {
            fs::symlink_metadata(path)
                .is_ok_and(|it| (it.dev(), it.ino()) == (morsel.device, morsel.inode))
        };
        let names = match asked {
            Some(name) => vec![name.to_owned()],
            None => {
                let named = files(&self.directory)?.into_iter().find(same);
                if let Some(path) = named {
                    return known(path);
                }
                default_names(source)
            }
        };
        for name in &names {
            let path = self.directory.join(name);
            match records::link(file, &path) {
                Ok(()) => {}
                Err(Errno::EXIST) => {
                    if !same(&path) {
                        continue;
                    }
                }
                // Root's copy, found by its shared name: only root may add names to it.
                Err(Errno::PERM) if asked.is_none() => return known(morsel.path.clone()),
                Err(error) => return Err(at(&path)(error)),
            }
            return known(path);
        }
        Err(self.taken(&names[0]))
    }

    /// Returns a morsel by another of its names.
    fn look_as(&self, path: PathBuf, known: &Morsel) -> Result<Morsel, MorselError> {
        let is = self
            .look(path.clone(), &[])
            .ok_or(MorselError::NoSuch(path))?;
        Ok(Morsel {
            size: known.size,
            identity: known.identity,
            digest: known.digest.clone(),
            source: known.source.clone(),
            ..is
        })
    }

    fn taken(&self, name: &OsStr) -> MorselError {
        let path = self.directory.join(name);
        let other = self.look(path.clone(), &self.records());
        let of = match other {
            Some(Morsel {
                source: Some(source),
                ..
            }) => source.to_string_lossy().into_owned(),
            Some(other) if other.owner != user() => format!("user {}", other.owner),
            _ => "no file".to_owned(),
        };
        MorselError::Taken { path, of }
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
        let is = |path: &PathBuf| {
            fs::symlink_metadata(path)
                .is_ok_and(|it| (it.dev(), it.ino()) == (morsel.device, morsel.inode))
        };
        for path in files(&self.directory)?.into_iter().filter(is) {
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

    /// Makes a morsel immutable: permanently on morselfs, by its mode bits elsewhere.
    ///
    /// # Errors
    /// No such morsel, a process still writes to it, or it belongs to another user.
    pub fn seal(&self, name: &OsStr) -> Result<Morsel, MorselError> {
        let morsel = self.get(name)?;
        if morsel.sealed {
            return Ok(morsel);
        }
        let file = OpenOptions::new()
            .read(true)
            .write(self.backing.kind == Kind::Morselfs)
            .open(&morsel.path)
            .map_err(at(&morsel.path))?;
        let mode = file.metadata().map_err(at(&morsel.path))?.mode();
        let can_write = || lease(&file, libc::F_RDLCK) == Err(Errno::AGAIN);
        if self.backing.kind != Kind::Morselfs && can_write() {
            return Err(MorselError::Busy(morsel.path));
        }
        self.seal_file(&file, &morsel.path, mode & 0o555)?;
        self.get(name)
    }

    fn seal_file(&self, file: &File, path: &Path, mode: u32) -> Result<(), MorselError> {
        file.set_permissions(Permissions::from_mode(mode))
            .map_err(at(path))?;
        if self.backing.kind == Kind::Morselfs {
            let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
            return match fcntl_add_seals(file, all) {
                Err(Errno::BUSY) => Err(MorselError::Busy(path.to_owned())),
                result => result.map_err(at(path)),
            };
        }
        Ok(())
    }

    /// Removes copies of earlier states of a file.
    fn remove_stale(&self, source: &Source) -> Result<Vec<Morsel>, MorselError> {
        let is = &source.identity;
        let is_stale = |morsel: &Morsel| {
            let was = morsel.identity.as_ref();
            let same_file = |was: &Identity| (was.device, was.inode) == (is.device, is.inode);
            was.is_some_and(|was| was != is && same_file(was))
                || was.is_some_and(|was| was != is)
                    && morsel
                        .source
                        .as_deref()
                        .is_some_and(|recorded| is_source(recorded, &source.path))
        };
        let mut removed = Vec::new();
        for morsel in self.list()?.into_iter().filter(is_stale) {
            // Copies of other users stay; they are not served.
            if self.unlink(&morsel).is_ok() {
                removed.push(morsel);
            }
        }
        Ok(removed)
    }

    /// Returns the entry at a path if it is a file.
    fn look(&self, path: PathBuf, records: &[Record]) -> Option<Morsel> {
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
    fn records(&self) -> Vec<Record> {
        let hidden = Hidden::open(&self.directory).ok().flatten();
        let places = hidden.map(|hidden| hidden.all()).unwrap_or_default();
        places.iter().flat_map(|place| place.records()).collect()
    }
}

/// Whether no process has a file open or mapped for writing; false if unknown. A later open for
/// writing updates the change time.
fn is_unwritten(file: &File) -> bool {
    let leased = lease(file, libc::F_RDLCK).is_ok();
    leased && lease(file, libc::F_UNLCK).is_ok()
}

/// Returns the source's own name, or a unique variant of it.
fn default_names(source: &Source) -> Vec<OsString> {
    let name = source.path.file_name().unwrap_or_default();
    let mut other = name.to_owned();
    other.push(format!("~{:08x}", source.identity.sum as u32));
    vec![name.to_owned(), other]
}

fn check_name(name: &OsStr) -> Result<(), MorselError> {
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
fn files(directory: &Path) -> Result<Vec<PathBuf>, MorselError> {
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

fn now() -> Timespec {
    Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    }
}

#[cfg(test)]
mod tests;
