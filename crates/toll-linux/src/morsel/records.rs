// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hidden directory of a store: records the source file of each copy.
//!
//! `.tollfree` holds a directory for each user, `UID`, which only that user (and root) can enter.
//! In it each copy has a second name (a hard link), `IDENTITY@DIGEST=SOURCE`, where SOURCE is the
//! path of the source with its slashes escaped. One link thus publishes content and origin
//! atomically, on every file system, and a copy is found even if it was renamed. `shared` belongs
//! to root: copies made by root that others may read have a third name there, a digest of the
//! identity, so that only users that can read the source can find its copy.
//!
//! Anyone may create files in `.tollfree`, so its entries are not followed or trusted before their
//! owner is verified: directories are opened without following links, and all names are relative to
//! an open directory.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, linkat, mkdirat, openat, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::{Identity, MorselError, at};

/// Name of the hidden directory of a store.
pub(super) const HIDDEN: &str = ".tollfree";
/// Root's directory in it for shared copies.
const SHARED: &str = "shared";
/// Maximum length of a file name.
pub(super) const NAME_MAX: usize = 255;
/// Replaces the front of a path that is too long.
const CUT: &str = "...";

/// A verified directory; the handle stays valid even if its name changes.
#[derive(Debug)]
pub(super) struct Place {
    /// For messages, and for programs that open files in it.
    pub path: PathBuf,
    /// Opened with `O_PATH`.
    directory: File,
    owner: u32,
}

impl AsFd for Place {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Place {
    /// The directory of a store itself.
    fn around(store: &Path) -> Result<Place, MorselError> {
        let directory = File::open(store).map_err(at(store))?;
        Ok(Place {
            owner: directory.metadata().map_err(at(store))?.uid(),
            path: store.to_owned(),
            directory,
        })
    }

    /// Opens a directory without following a link; `None` if it does not exist.
    fn find(parent: BorrowedFd, path: PathBuf) -> Result<Option<Place>, MorselError> {
        let name = path.file_name().unwrap_or_default();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory: File = match openat(parent, name, flags, Mode::empty()) {
            Ok(directory) => directory.into(),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(at(&path)(error)),
        };
        let stat = fstat(&directory).map_err(at(&path))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::Directory {
            let what = match kind {
                FileType::Symlink => "a symbolic link",
                FileType::RegularFile => "a file",
                _ => "something else",
            };
            let why = format!(
                "is {what} of user {} instead of a directory: remove it",
                stat.st_uid
            );
            return Err(MorselError::Foreign { path, why });
        }
        Ok(Some(Place {
            path,
            directory,
            owner: stat.st_uid,
        }))
    }

    /// Opens it for reading.
    pub fn open(&self) -> Result<File, MorselError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&self.directory, ".", flags, Mode::empty());
        Ok(opened.map_err(at(&self.path))?.into())
    }

    /// Returns the names of the entries; empty if the directory cannot be read.
    pub fn names(&self) -> Vec<CString> {
        let Some(entries) = self.open().ok().and_then(|it| Dir::read_from(it).ok()) else {
            return Vec::new();
        };
        let names = entries.flatten().map(|entry| entry.file_name().to_owned());
        names
            .filter(|name| !matches!(name.to_bytes(), b"." | b".."))
            .collect()
    }

    /// Returns an entry that is a file, with its path; does not follow a link.
    fn stat(&self, name: &OsStr) -> Option<Stat> {
        statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Opens an entry that is a file for reading.
    pub fn open_file(&self, name: &OsStr) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Some(
            openat(&self.directory, name, flags, Mode::empty())
                .ok()?
                .into(),
        )
    }

    /// Links an open file into the directory.
    pub fn link(&self, file: &File, name: &OsStr) -> Result<(), MorselError> {
        link_at(file, self.as_fd(), name).map_err(at(&self.path.join(name)))
    }

    /// Links an open file by another of its names.
    pub fn replace(&self, file: &File, name: &OsStr) -> Result<(), MorselError> {
        unlinkat(&self.directory, name, AtFlags::empty()).map_err(at(&self.path.join(name)))?;
        self.link(file, name)
    }

    /// Removes all names of a file.
    ///
    /// # Errors
    /// A name may not be removed.
    pub fn unlink(&self, device: u64, inode: u64) -> Result<(), MorselError> {
        for name in self.names() {
            let name = OsStr::from_bytes(name.to_bytes());
            let is_it = |stat: Stat| (stat.st_dev, stat.st_ino) == (device, inode);
            if self.stat(name).is_some_and(is_it) {
                match unlinkat(&self.directory, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(at(&self.path.join(name))(error)),
                }
            }
        }
        Ok(())
    }

    /// Returns the records in it. Records for files of another user are ignored.
    pub fn records(&self) -> Vec<Record> {
        let read = |name: CString| {
            let name = OsString::from_vec(name.into_bytes());
            let stat = self.stat(&name)?;
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            let (identity, digest, source) = parse(&name)?;
            (is_file && stat.st_uid == self.owner).then(|| Record {
                path: self.path.join(&name),
                name,
                device: stat.st_dev,
                inode: stat.st_ino,
                identity,
                digest,
                source,
            })
        };
        self.names().into_iter().filter_map(read).collect()
    }
}

/// A second name of a copy.
#[derive(Debug)]
pub(super) struct Record {
    pub path: PathBuf,
    pub name: OsString,
    pub device: u64,
    pub inode: u64,
    pub identity: Identity,
    /// Digest of the whole content, hexadecimal.
    pub digest: String,
    pub source: OsString,
}

/// The hidden directory of a store.
#[derive(Debug)]
pub(super) struct Hidden(Place);

impl Hidden {
    /// Opens the hidden directory; `None` if it does not exist.
    ///
    /// # Errors
    /// [`MorselError::Foreign`]: it is not a directory, or others can replace its entries.
    pub fn open(store: &Path) -> Result<Option<Hidden>, MorselError> {
        let around = Place::around(store)?;
        let Some(place) = Place::find(around.as_fd(), store.join(HIDDEN))? else {
            return Ok(None);
        };
        let stat = fstat(&place.directory).map_err(at(&place.path))?;
        let foreign = |why| {
            let path = place.path.clone();
            Err(MorselError::Foreign { path, why })
        };
        if ![0, user(), around.owner].contains(&stat.st_uid) {
            return foreign(format!(
                "belongs to user {}, not to root, you, or the owner of {}: remove it",
                stat.st_uid,
                store.display()
            ));
        }
        if stat.st_mode & 0o022 != 0 && stat.st_mode & 0o1000 == 0 {
            return foreign(format!(
                "others can replace its entries (mode {:04o}, no sticky bit): chmod +t or remove it",
                stat.st_mode & 0o7777
            ));
        }
        Ok(Some(Hidden(place)))
    }

    /// Opens the hidden directory and creates it if necessary, with the permissions of the store.
    ///
    /// # Errors
    /// As [`Hidden::open`], or it cannot be created.
    pub fn make(store: &Path) -> Result<Hidden, MorselError> {
        if Hidden::open(store)?.is_none() {
            let around = Place::around(store)?;
            let mode = around
                .stat(OsStr::new("."))
                .map_or(0o700, |it| it.st_mode & 0o777);
            let sticky = if mode & 0o022 == 0 { 0 } else { 0o1000 };
            around.make(HIDDEN, Mode::from_raw_mode(mode | sticky))?;
        }
        let nothing = || MorselError::NoSuch(store.join(HIDDEN));
        let hidden = Hidden::open(store)?.ok_or_else(nothing)?;
        if user() == 0 {
            // Set the mode before another process takes the name.
            let _ = hidden.0.make(SHARED, Mode::from_raw_mode(0o711));
        }
        Ok(hidden)
    }

    /// Returns our own directory; `None` if it does not exist.
    pub fn own(&self) -> Option<Place> {
        let is_ours = |place: &Place| place.owner == user() && place.is_private();
        let own = self.users().into_iter();
        own.map(|(_, place)| place).find(is_ours)
    }

    /// Returns our own directory and creates it if necessary: named by our user id, or, if another
    /// user has taken that name, by our id and another number.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn make_own(&self) -> Result<Place, MorselError> {
        if let Some(own) = self.own() {
            return Ok(own);
        }
        let own = user().to_string();
        if let Some(made) = self.0.make(&own, Mode::RWXU)?.filter(Place::is_private) {
            return Ok(made);
        }
        let directory = tempfile::Builder::new()
            .prefix(&format!("{own}-"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.0.path)
            .map_err(at(&self.0.path))?;
        let path = directory.keep();
        Place::find(self.0.as_fd(), path.clone())?
            .filter(Place::is_private)
            .ok_or(MorselError::NoSuch(path))
    }

    /// Returns root's directory of shared copies; `None` if it does not exist, or is not root's.
    pub fn shared(&self) -> Option<Place> {
        let place = Place::find(self.0.as_fd(), self.0.path.join(SHARED)).ok()??;
        (place.owner == 0).then_some(place)
    }

    /// Returns the directories of all users that we may read, ours first.
    pub fn all(&self) -> Vec<Place> {
        let mut places: Vec<Place> = self
            .users()
            .into_iter()
            .filter(|(number, place)| *number == place.owner)
            .filter(|(number, _)| user() == 0 || *number == user())
            .map(|(_, place)| place)
            .collect();
        places.sort_by_key(|place| place.owner != user());
        places
    }

    /// Returns the entries named by a user's id, sorted by name.
    fn users(&self) -> Vec<(u32, Place)> {
        let mut names = self.0.names();
        names.sort_unstable();
        let open = |name: CString| {
            let name = name.into_string().ok()?;
            let number = name.split('-').next()?.parse().ok()?;
            let place = Place::find(self.0.as_fd(), self.0.path.join(&name)).ok()??;
            Some((number, place))
        };
        names.into_iter().filter_map(open).collect()
    }

    /// Removes all names of a file in the hidden directory.
    ///
    /// # Errors
    /// A name may not be removed.
    pub fn unlink(&self, device: u64, inode: u64) -> Result<(), MorselError> {
        let places = self.all().into_iter().chain(self.shared());
        for place in places {
            place.unlink(device, inode)?;
        }
        // Files of earlier versions.
        self.0.unlink(device, inode)
    }
}

impl Place {
    /// Returns a subdirectory and creates it if necessary. `None` if it is not ours.
    fn make(&self, name: &str, mode: Mode) -> Result<Option<Place>, MorselError> {
        let path = self.path.join(name);
        let is_new = match mkdirat(&self.directory, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(at(&path)(error)),
        };
        let place = match Place::find(self.as_fd(), path) {
            Ok(place) => place.filter(|place| place.owner == user()),
            Err(MorselError::Foreign { .. }) => None,
            Err(error) => return Err(error),
        };
        if let Some(place) = place.as_ref().filter(|_| is_new) {
            // Independent of the umask.
            place
                .open()?
                .set_permissions(Permissions::from_mode(mode.as_raw_mode()))
                .map_err(at(&place.path))?;
        }
        Ok(place)
    }

    /// Whether only the owner can enter it.
    fn is_private(&self) -> bool {
        fstat(&self.directory).is_ok_and(|stat| stat.st_uid == user() && stat.st_mode & 0o077 == 0)
    }
}

/// Returns the effective user.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns the name of a shared copy of a file in this state; it does not reveal the file.
pub(super) fn key(identity: &Identity) -> OsString {
    let digest = blake3::hash(identity.to_string().as_bytes());
    digest.to_hex().as_str().into()
}

/// Formats `IDENTITY@DIGEST=SOURCE`, with the source cut at the front if it is too long.
pub(super) fn record_name(identity: &Identity, digest: &str, source: &Path) -> OsString {
    let mut name = format!("{identity}@{digest}=").into_bytes();
    let room = NAME_MAX.saturating_sub(name.len());
    let mut escaped: Vec<Vec<u8>> = source.as_os_str().as_bytes().iter().map(escape).collect();
    let length = |escaped: &[Vec<u8>]| escaped.iter().map(Vec::len).sum::<usize>();
    if length(&escaped) > room {
        let mut from = 0;
        while length(&escaped[from..]) + CUT.len() > room {
            from += 1;
        }
        escaped.splice(..from, [CUT.as_bytes().to_vec()]);
    }
    name.extend(escaped.concat());
    OsString::from_vec(name)
}

/// Parses the name of a record into identity, digest and source.
fn parse(name: &OsStr) -> Option<(Identity, String, OsString)> {
    let name = name.as_bytes();
    let cut = name.iter().position(|byte| *byte == b'=')?;
    let (identity, digest) = std::str::from_utf8(&name[..cut]).ok()?.split_once('@')?;
    let source = unescape(&name[cut + 1..]);
    Some((identity.parse().ok()?, digest.to_owned(), source))
}

/// Whether the source of a record is this path, as far as the record stores it.
pub(super) fn is_source(recorded: &OsStr, path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    match recorded.as_bytes().strip_prefix(CUT.as_bytes()) {
        Some(end) => path.ends_with(end),
        None => recorded.as_bytes() == path,
    }
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

/// Links an open file, which may have no name yet.
pub(super) fn link(file: &File, path: &Path) -> Result<(), Errno> {
    link_at(file, CWD, path.as_os_str())
}

fn link_at(file: &File, directory: BorrowedFd, name: &OsStr) -> Result<(), Errno> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, open, directory, name, AtFlags::SYMLINK_FOLLOW)
}

/// Whether the error is that the name exists.
pub(super) fn is_there(error: &MorselError) -> bool {
    matches!(error, MorselError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests;
