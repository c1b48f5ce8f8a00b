// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories that are opened without following links.

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

use super::record::{Record, parse};
use super::{MorselError, at};

/// A verified directory; the handle stays valid even if its name changes.
#[derive(Debug)]
pub(super) struct Place {
    /// For messages, and for programs that open files in it.
    pub path: PathBuf,
    /// Opened with `O_PATH`.
    directory: File,
    pub owner: u32,
}

impl AsFd for Place {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Place {
    /// The directory of a store itself.
    pub fn around(store: &Path) -> Result<Place, MorselError> {
        let directory = File::open(store).map_err(at(store))?;
        Ok(Place {
            owner: directory.metadata().map_err(at(store))?.uid(),
            path: store.to_owned(),
            directory,
        })
    }

    /// Opens a directory without following a link; `None` if it does not exist.
    pub fn find(parent: BorrowedFd, path: PathBuf) -> Result<Option<Place>, MorselError> {
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
    pub fn stat(&self, name: &OsStr) -> Option<Stat> {
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

    /// Returns a subdirectory and creates it if necessary. `None` if it is not ours.
    pub fn make(&self, name: &str, mode: Mode) -> Result<Option<Place>, MorselError> {
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
    pub fn is_private(&self) -> bool {
        fstat(&self.directory).is_ok_and(|stat| stat.st_uid == user() && stat.st_mode & 0o077 == 0)
    }
}

/// Returns the effective user.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
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
