// SPDX-License-Identifier: MIT OR Apache-2.0
//! The morsels of a folder.
//!
//! What is in the folder are the morsels by their names. `.tollfree` in it holds a second name
//! (a hard link) for each copy of a file: `IDENTITY@OWNER=SOURCE`, the source's path with its
//! slashes escaped. So one link publishes content and origin at once, on every
//! file system, and a copy is found again whatever people call it. Users rely on their own copies
//! and on root's.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, SealFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT,
    fcntl_add_seals, fcntl_get_seals, flock, futimens, linkat,
};
use rustix::io::Errno;

use super::fill::{Copied, Copy};
use super::identity::sample;
use super::room::lease;
use super::{Backing, Identity, Kind, MorselError, Source, at};
use crate::Root;

/// The hidden folder of records.
const RECORDS: &str = ".tollfree";
/// The longest file name.
const NAME_MAX: usize = 255;

/// A folder of morsels.
#[derive(Debug, Clone)]
pub struct Store {
    pub folder: PathBuf,
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
    /// Nobody changes it any more.
    pub sealed: bool,
    /// The user whose it is.
    pub owner: u32,
    /// Of which state of which file it is a copy; `None` for what somebody made by hand.
    pub identity: Option<Identity>,
    /// The path of that file, cut at the front (`...`) if it is long.
    pub source: Option<OsString>,
    /// When it was last mapped or read.
    pub used: SystemTime,
}

impl Morsel {
    /// Whether the content can be relied on: root or we ourselves put it there.
    fn is_trusted(&self) -> bool {
        [0, rustix::process::geteuid().as_raw()].contains(&self.owner)
    }
}

/// A copy that is asked for.
pub struct Request<'a> {
    pub source: &'a Source,
    /// Its name in the folder; else the source's own.
    pub name: Option<&'a OsStr>,
    /// What all morsels together may hold, bytes.
    pub limit: Option<u64>,
    /// Told how many bytes are copied, and `None` while another copy is waited for; ends it by
    /// answering false.
    pub progress: &'a mut dyn FnMut(Option<u64>) -> bool,
}

/// What [`Store::put`] did.
#[derive(Debug, Clone)]
pub struct Put {
    pub morsel: Morsel,
    /// False where it was there already.
    pub filled: bool,
    /// Whether the copy went past the page cache.
    pub direct: bool,
    /// What had to go for it, or was out of date.
    pub removed: Vec<Morsel>,
}

impl Store {
    /// Opens a folder on a file system in memory.
    ///
    /// # Errors
    /// As [`Backing::of`].
    pub fn open(folder: &Path) -> Result<Store, MorselError> {
        let folder = fs::canonicalize(folder).map_err(at(folder))?;
        Ok(Store {
            backing: Backing::of(&Root::system(), &folder)?,
            folder,
        })
    }

    /// All morsels, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self) -> Result<Vec<Morsel>, MorselError> {
        let records = self.records();
        let mut morsels: Vec<Morsel> = Vec::new();
        for path in files(&self.folder)? {
            if let Some(morsel) = self.look(path, &records) {
                morsels.push(morsel);
            }
        }
        // A copy that was interrupted between its two names, or whose name somebody removed.
        for record in &records {
            if !morsels.iter().any(|it| it.inode == record.inode) {
                morsels.extend(self.look(record.path.clone(), &records));
            }
        }
        morsels.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(morsels)
    }

    /// The morsel of this name, or path.
    ///
    /// # Errors
    /// There is none.
    pub fn get(&self, name: &OsStr) -> Result<Morsel, MorselError> {
        check_name(name)?;
        let path = self.folder.join(name);
        self.look(path.clone(), &self.records())
            .ok_or(MorselError::NoSuch(path))
    }

    /// A morsel that holds a file in this state, if there is one that can be relied on.
    pub fn find(&self, identity: &Identity) -> Option<Morsel> {
        let records = self.records();
        let mut found = records
            .iter()
            .filter(|record| record.identity == *identity)
            .filter_map(|record| self.look(record.path.clone(), &records))
            .filter(|morsel| morsel.sealed && morsel.is_trusted());
        found.find(|morsel| {
            let Ok(file) = File::open(&morsel.path) else {
                return false;
            };
            mark_used(&file);
            sample(&file, identity.size).is_ok_and(|sum| sum == identity.sum)
        })
    }

    /// Copies a file into the store, unless it is there.
    ///
    /// # Errors
    /// No room, a name that is taken, an interruption, or the system's. Then nothing is left behind.
    pub fn put(&self, request: Request) -> Result<Put, MorselError> {
        let Request {
            source,
            name,
            limit,
            progress,
        } = request;
        name.map_or(Ok(()), check_name)?;
        let there = |morsel| Put {
            morsel,
            filled: false,
            direct: false,
            removed: Vec::new(),
        };
        if let Some(morsel) = self.find(&source.identity) {
            return self.name(morsel, source, name).map(there);
        }
        // One copy at a time: its room is its own, and whoever wants the same file finds it then.
        let _lock = self.lock(progress)?;
        if let Some(morsel) = self.find(&source.identity) {
            return self.name(morsel, source, name).map(there);
        }
        let mut removed = self.remove_stale(source)?;
        if let Some(name) = name.filter(|name| self.folder.join(name).exists()) {
            return Err(self.taken(name));
        }
        let size = source
            .identity
            .size
            .next_multiple_of(self.backing.smallest_page());
        removed.extend(self.make_room(size, limit)?);
        let (file, direct) = self.fill(source, progress)?;
        let record = self.record_path(source);
        link(&file, &record).map_err(at(&record))?;
        let morsel = self
            .look(record.clone(), &self.records())
            .ok_or(MorselError::NoSuch(record))?;
        Ok(Put {
            morsel: self.name(morsel, source, name)?,
            filled: true,
            direct,
            removed,
        })
    }

    /// Makes a nameless copy, sealed.
    fn fill(
        &self,
        source: &Source,
        progress: &mut dyn FnMut(Option<u64>) -> bool,
    ) -> Result<(File, bool), MorselError> {
        // Who writes to a mapping that was written to before leaves no time of change behind.
        let is_unwritten = is_unwritten(&source.file);
        let mode = source.file.metadata().map_err(at(&source.path))?.mode();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE)
            .open(&self.folder)
            .map_err(at(&self.folder))?;
        let size = source.identity.size;
        file.set_len(match self.backing.kind {
            Kind::Hugetlbfs => size.next_multiple_of(self.backing.smallest_page()),
            Kind::Morselfs | Kind::Tmpfs => size,
        })
        .map_err(at(&self.folder))?;
        let copy = Copy {
            source: &source.file,
            source_path: &source.path,
            morsel: &file,
            folder: &self.folder,
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
        futimens(&file, &times).map_err(at(&self.folder))?;
        // As readable as its source, and writable for nobody.
        self.seal_file(&file, &self.folder, mode & 0o444 | 0o400)?;
        Ok((file, direct))
    }

    /// Gives a copy its name in the folder: the one that is asked for, or the source's; with a
    /// part of its checksum where another morsel has that.
    fn name(
        &self,
        morsel: Morsel,
        source: &Source,
        asked: Option<&OsStr>,
    ) -> Result<Morsel, MorselError> {
        let records = self.records();
        let same = |path: &PathBuf| fs::metadata(path).is_ok_and(|it| it.ino() == morsel.inode);
        let names = match asked {
            Some(name) => vec![name.to_owned()],
            None => {
                let named = files(&self.folder)?.into_iter().find(same);
                if let Some(path) = named {
                    return self
                        .look(path.clone(), &records)
                        .ok_or(MorselError::NoSuch(path));
                }
                default_names(source)
            }
        };
        for name in &names {
            let path = self.folder.join(name);
            match fs::hard_link(&morsel.path, &path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !same(&path) {
                        continue;
                    }
                }
                Err(error) => return Err(at(&path)(error)),
            }
            return self
                .look(path.clone(), &records)
                .ok_or(MorselError::NoSuch(path));
        }
        Err(self.taken(&names[0]))
    }

    fn taken(&self, name: &OsStr) -> MorselError {
        let path = self.folder.join(name);
        let other = self.look(path.clone(), &self.records());
        let of = other.and_then(|morsel| morsel.source);
        MorselError::Taken {
            path,
            of: of.map_or("no file".to_owned(), |of| of.to_string_lossy().into_owned()),
        }
    }

    /// Removes a morsel: who maps it keeps it, and its memory is free when nobody does.
    ///
    /// # Errors
    /// There is none of this name, or it may not be removed.
    pub fn remove(&self, name: &OsStr) -> Result<Morsel, MorselError> {
        let morsel = self.get(name)?;
        self.unlink(&morsel)?;
        Ok(morsel)
    }

    /// Removes all names of a morsel, its records last: where the first may not go, nothing does.
    pub(super) fn unlink(&self, morsel: &Morsel) -> Result<(), MorselError> {
        let is = |path: &PathBuf| {
            fs::symlink_metadata(path).is_ok_and(|meta| meta.ino() == morsel.inode)
        };
        let records = self.records().into_iter().map(|record| record.path);
        let names = files(&self.folder)?.into_iter().chain(records);
        for path in names.filter(is) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(&morsel.path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a morsel immutable. On morselfs for ever; elsewhere by its mode bits.
    ///
    /// # Errors
    /// There is none of this name, somebody still writes to it, or it is somebody else's.
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
                    && morsel.source.as_deref() == Some(source.path.as_os_str())
        };
        let mut removed = Vec::new();
        for morsel in self.list()?.into_iter().filter(is_stale) {
            // Somebody else's stays; nobody is served from it.
            if self.unlink(&morsel).is_ok() {
                removed.push(morsel);
            }
        }
        Ok(removed)
    }

    /// What is at a path, if it is a file.
    fn look(&self, path: PathBuf, records: &[Record]) -> Option<Morsel> {
        let meta = fs::symlink_metadata(&path).ok()?;
        if !meta.is_file() {
            return None;
        }
        let record = records.iter().find(|record| record.inode == meta.ino());
        let identity = record.map(|record| record.identity);
        Some(Morsel {
            name: path.strip_prefix(&self.folder).ok()?.into(),
            device: meta.dev(),
            inode: meta.ino(),
            size: identity.map_or(meta.len(), |identity| identity.size),
            allocated: meta.blocks() * 512,
            sealed: self.is_sealed(&path, &meta),
            owner: meta.uid(),
            identity,
            source: record.map(|record| record.source.clone()),
            used: meta.accessed().unwrap_or(SystemTime::UNIX_EPOCH),
            path,
        })
    }

    fn is_sealed(&self, path: &Path, meta: &Metadata) -> bool {
        let by_mode = meta.mode() & 0o222 == 0;
        match self.backing.kind {
            Kind::Morselfs => File::open(path)
                .ok()
                .and_then(|file| fcntl_get_seals(&file).ok())
                .map_or(by_mode, |seals| seals.contains(SealFlags::WRITE)),
            Kind::Tmpfs | Kind::Hugetlbfs => by_mode,
        }
    }

    fn records(&self) -> Vec<Record> {
        let paths = files(&self.folder.join(RECORDS)).unwrap_or_default();
        paths.into_iter().filter_map(Record::read).collect()
    }

    fn record_path(&self, source: &Source) -> PathBuf {
        let folder = self.folder.join(RECORDS);
        let owner = rustix::process::geteuid().as_raw();
        folder.join(record_name(&source.identity, owner, &source.path))
    }

    /// Makes the folder of records, as open to others as the store itself.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn prepare(&self) -> Result<(), MorselError> {
        let path = self.folder.join(RECORDS);
        let mode = fs::metadata(&self.folder).map_err(at(&path))?.mode();
        match fs::create_dir(&path) {
            // Whatever the umask is.
            Ok(()) => {
                fs::set_permissions(&path, Permissions::from_mode(mode & 0o7777)).map_err(at(&path))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// Waits until nobody else copies into this store.
    fn lock(&self, progress: &mut dyn FnMut(Option<u64>) -> bool) -> Result<File, MorselError> {
        self.prepare()?;
        let path = self.folder.join(RECORDS);
        let folder = File::open(&path).map_err(at(&path))?;
        loop {
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(folder),
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(at(&path)(error)),
            }
            if !progress(None) {
                return Err(MorselError::Interrupted);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Whether nobody has a file open, or mapped, for writing; false where that cannot be known. Whoever
/// opens it later leaves a time of change behind.
fn is_unwritten(file: &File) -> bool {
    let leased = lease(file, libc::F_RDLCK).is_ok();
    leased && lease(file, libc::F_UNLCK).is_ok()
}

/// A second name of a copy.
struct Record {
    path: PathBuf,
    inode: u64,
    identity: Identity,
    source: OsString,
}

impl Record {
    fn read(path: PathBuf) -> Option<Record> {
        let name = path.file_name()?.as_bytes();
        let cut = name.iter().position(|byte| *byte == b'=')?;
        let (identity, _) = std::str::from_utf8(&name[..cut]).ok()?.split_once('@')?;
        let meta = fs::symlink_metadata(&path).ok()?;
        Some(Record {
            inode: meta.ino(),
            identity: identity.parse().ok()?,
            source: unescape(&name[cut + 1..]),
            path,
        })
    }
}

/// `IDENTITY@OWNER=SOURCE`, the source cut at the front where it is too long.
fn record_name(identity: &Identity, owner: u32, source: &Path) -> OsString {
    let mut name = format!("{identity}@{owner}=").into_bytes();
    let room = NAME_MAX - name.len();
    let mut escaped: Vec<Vec<u8>> = source.as_os_str().as_bytes().iter().map(escape).collect();
    let length = |escaped: &[Vec<u8>]| escaped.iter().map(Vec::len).sum::<usize>();
    if length(&escaped) > room {
        const CUT: &[u8] = b"...";
        let mut from = 0;
        while length(&escaped[from..]) + CUT.len() > room {
            from += 1;
        }
        escaped.splice(..from, [CUT.to_vec()]);
    }
    name.extend(escaped.concat());
    OsString::from_vec(name)
}

fn escape(byte: &u8) -> Vec<u8> {
    match byte {
        b'/' => b"%2f".to_vec(),
        b'%' => b"%25".to_vec(),
        other => vec![*other],
    }
}

fn unescape(mut text: &[u8]) -> OsString {
    let mut plain = Vec::new();
    while let [first, rest @ ..] = text {
        let (byte, rest) = match (first, rest) {
            (b'%', [b'2', b'f', rest @ ..]) => (b'/', rest),
            (b'%', [b'2', b'5', rest @ ..]) => (b'%', rest),
            _ => (*first, rest),
        };
        plain.push(byte);
        text = rest;
    }
    OsString::from_vec(plain)
}

/// The source's own name, and one that nothing else has.
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
        b"." | b".." => wrong("it names a folder"),
        name if name.contains(&b'/') => wrong("it has a slash in it"),
        name if name.len() > NAME_MAX => wrong("it is longer than 255 bytes"),
        _ => Ok(()),
    }
}

/// The paths of what is in a folder, except the folder of records.
fn files(folder: &Path) -> Result<Vec<PathBuf>, MorselError> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| !path.ends_with(RECORDS)).collect())
}

/// Notes a use, also where the mount notes one a day; nobody can for somebody else's morsel.
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

/// Gives a nameless file its name.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let nameless = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, nameless, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
