// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hidden folder of a store: which copy is of which file.
//!
//! `.tollfree` holds a folder for each user, `UID`, which only that user (and root) can enter. In it each
//! copy has a second name (a hard link), `IDENTITY@DIGEST=SOURCE`, the source's path with its
//! slashes escaped. So one link publishes content and origin at once, on every file system, and a
//! copy is found again whatever people call it. `shared` is root's: what others may read of root's copies
//! has a third name there, a digest of the identity, so that whoever can read the file finds the copy, and nobody
//! else learns of which file it is.
//!
//! Anybody may make files in `.tollfree`, so nothing in there is followed or believed before its owner is
//! known: folders are opened without following links, and all names are relative to an open folder.

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

/// The hidden folder of a store.
pub(super) const HIDDEN: &str = ".tollfree";
/// In it, root's folder of copies for everybody.
const SHARED: &str = "shared";
/// The longest file name.
pub(super) const NAME_MAX: usize = 255;
/// What stands for the front of a path that is too long.
const CUT: &str = "...";

/// A folder that was checked, and holds still whatever happens to its name.
#[derive(Debug)]
pub(super) struct Place {
    /// For messages, and for programs that open what is in it.
    pub path: PathBuf,
    /// Only names it (`O_PATH`).
    folder: File,
    owner: u32,
}

impl AsFd for Place {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

impl Place {
    /// A store's own folder.
    fn around(store: &Path) -> Result<Place, MorselError> {
        let folder = File::open(store).map_err(at(store))?;
        Ok(Place {
            owner: folder.metadata().map_err(at(store))?.uid(),
            path: store.to_owned(),
            folder,
        })
    }

    /// Opens a folder without following a link; `None` if there is none.
    fn find(parent: BorrowedFd, path: PathBuf) -> Result<Option<Place>, MorselError> {
        let name = path.file_name().unwrap_or_default();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder: File = match openat(parent, name, flags, Mode::empty()) {
            Ok(folder) => folder.into(),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(at(&path)(error)),
        };
        let stat = fstat(&folder).map_err(at(&path))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::Directory {
            let what = match kind {
                FileType::Symlink => "a symbolic link",
                FileType::RegularFile => "a file",
                _ => "something else",
            };
            let why = format!(
                "is {what} of user {}, where a folder has to be: remove it",
                stat.st_uid
            );
            return Err(MorselError::Foreign { path, why });
        }
        Ok(Some(Place {
            path,
            folder,
            owner: stat.st_uid,
        }))
    }

    /// Opens it for reading.
    pub fn open(&self) -> Result<File, MorselError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(&self.folder, ".", flags, Mode::empty());
        Ok(opened.map_err(at(&self.path))?.into())
    }

    /// The names of what is in it; none where it cannot be read.
    pub fn names(&self) -> Vec<CString> {
        let Some(entries) = self.open().ok().and_then(|it| Dir::read_from(it).ok()) else {
            return Vec::new();
        };
        let names = entries.flatten().map(|entry| entry.file_name().to_owned());
        names
            .filter(|name| !matches!(name.to_bytes(), b"." | b".."))
            .collect()
    }

    /// A file in it, and what it is called; a link is not followed.
    fn stat(&self, name: &OsStr) -> Option<Stat> {
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Opens a file in it for reading.
    pub fn open_file(&self, name: &OsStr) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Some(
            openat(&self.folder, name, flags, Mode::empty())
                .ok()?
                .into(),
        )
    }

    /// Gives an open file a name in it.
    pub fn link(&self, file: &File, name: &OsStr) -> Result<(), MorselError> {
        link_at(file, self.as_fd(), name).map_err(at(&self.path.join(name)))
    }

    /// Gives an open file a name that another one has.
    pub fn replace(&self, file: &File, name: &OsStr) -> Result<(), MorselError> {
        unlinkat(&self.folder, name, AtFlags::empty()).map_err(at(&self.path.join(name)))?;
        self.link(file, name)
    }

    /// Removes the names of a file.
    ///
    /// # Errors
    /// It has one that may not be removed.
    pub fn unlink(&self, device: u64, inode: u64) -> Result<(), MorselError> {
        for name in self.names() {
            let name = OsStr::from_bytes(name.to_bytes());
            let is_it = |stat: Stat| (stat.st_dev, stat.st_ino) == (device, inode);
            if self.stat(name).is_some_and(is_it) {
                match unlinkat(&self.folder, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(error) => return Err(at(&self.path.join(name))(error)),
                }
            }
        }
        Ok(())
    }

    /// The records in it. A record of somebody else's file is none.
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
    /// Of the whole content, hexadecimal.
    pub digest: String,
    pub source: OsString,
}

/// The hidden folder of a store.
#[derive(Debug)]
pub(super) struct Hidden(Place);

impl Hidden {
    /// Opens the hidden folder; `None` if there is none.
    ///
    /// # Errors
    /// [`MorselError::Foreign`]: it is not a folder, or others could exchange what is in it.
    pub fn open(store: &Path) -> Result<Option<Hidden>, MorselError> {
        let around = Place::around(store)?;
        let Some(place) = Place::find(around.as_fd(), store.join(HIDDEN))? else {
            return Ok(None);
        };
        let stat = fstat(&place.folder).map_err(at(&place.path))?;
        let foreign = |why| {
            let path = place.path.clone();
            Err(MorselError::Foreign { path, why })
        };
        if ![0, user(), around.owner].contains(&stat.st_uid) {
            return foreign(format!(
                "belongs to user {}, neither to root, nor to you, nor to the owner of {}: remove it",
                stat.st_uid,
                store.display()
            ));
        }
        if stat.st_mode & 0o022 != 0 && stat.st_mode & 0o1000 == 0 {
            return foreign(format!(
                "others can exchange what is in it (mode {:04o}, without the sticky bit): chmod +t, or remove it",
                stat.st_mode & 0o7777
            ));
        }
        Ok(Some(Hidden(place)))
    }

    /// Opens the hidden folder, which is made if it does not exist: as open to others as the store itself.
    ///
    /// # Errors
    /// As [`Hidden::open`], or it cannot be made.
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
            // Before anybody else takes the name.
            let _ = hidden.0.make(SHARED, Mode::from_raw_mode(0o711));
        }
        Ok(hidden)
    }

    /// Our own folder; `None` if there is none.
    pub fn own(&self) -> Option<Place> {
        let is_ours = |place: &Place| place.owner == user() && place.is_private();
        let own = self.users().into_iter();
        own.map(|(_, place)| place).find(is_ours)
    }

    /// Our own folder, which is made if it does not exist: called by our number, or where somebody has
    /// taken that name, by our number and another one.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_own(&self) -> Result<Place, MorselError> {
        if let Some(own) = self.own() {
            return Ok(own);
        }
        let own = user().to_string();
        if let Some(made) = self.0.make(&own, Mode::RWXU)?.filter(Place::is_private) {
            return Ok(made);
        }
        let folder = tempfile::Builder::new()
            .prefix(&format!("{own}-"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.0.path)
            .map_err(at(&self.0.path))?;
        let path = folder.keep();
        Place::find(self.0.as_fd(), path.clone())?
            .filter(Place::is_private)
            .ok_or(MorselError::NoSuch(path))
    }

    /// Root's folder of copies for everybody; `None` if there is none, or it is not root's.
    pub fn shared(&self) -> Option<Place> {
        let place = Place::find(self.0.as_fd(), self.0.path.join(SHARED)).ok()??;
        (place.owner == 0).then_some(place)
    }

    /// The folders of all users that we may read, ours first.
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

    /// What is called by the number of a user, in the order of the names.
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

    /// Removes all names of a file in the hidden folder.
    ///
    /// # Errors
    /// It has one that may not be removed.
    pub fn unlink(&self, device: u64, inode: u64) -> Result<(), MorselError> {
        let places = self.all().into_iter().chain(self.shared());
        for place in places {
            place.unlink(device, inode)?;
        }
        // What earlier versions left there.
        self.0.unlink(device, inode)
    }
}

impl Place {
    /// A folder in this one, which is made if it does not exist. `None` if it is not ours.
    fn make(&self, name: &str, mode: Mode) -> Result<Option<Place>, MorselError> {
        let path = self.path.join(name);
        let is_new = match mkdirat(&self.folder, name, Mode::RWXU) {
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
            // Whatever the umask is.
            place
                .open()?
                .set_permissions(Permissions::from_mode(mode.as_raw_mode()))
                .map_err(at(&place.path))?;
        }
        Ok(place)
    }

    /// Whether nobody but its owner can enter it.
    fn is_private(&self) -> bool {
        fstat(&self.folder).is_ok_and(|stat| stat.st_uid == user() && stat.st_mode & 0o077 == 0)
    }
}

/// The effective user.
pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// What a shared copy of a file in this state is called: nobody can tell from it which file that is.
pub(super) fn key(identity: &Identity) -> OsString {
    let digest = blake3::hash(identity.to_string().as_bytes());
    digest.to_hex().as_str().into()
}

/// `IDENTITY@DIGEST=SOURCE`, the source cut at the front where it is too long.
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

/// Identity, digest and source of a record, by its name.
fn parse(name: &OsStr) -> Option<(Identity, String, OsString)> {
    let name = name.as_bytes();
    let cut = name.iter().position(|byte| *byte == b'=')?;
    let (identity, digest) = std::str::from_utf8(&name[..cut]).ok()?.split_once('@')?;
    let source = unescape(&name[cut + 1..]);
    Some((identity.parse().ok()?, digest.to_owned(), source))
}

/// Whether the source of a record is this path, as far as the record has kept it.
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

/// Gives an open file, which may have none yet, a name.
pub(super) fn link(file: &File, path: &Path) -> Result<(), Errno> {
    link_at(file, CWD, path.as_os_str())
}

fn link_at(file: &File, folder: BorrowedFd, name: &OsStr) -> Result<(), Errno> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, open, folder, name, AtFlags::SYMLINK_FOLLOW)
}

/// Whether the error is that the name is taken.
pub(super) fn is_there(error: &MorselError) -> bool {
    matches!(error, MorselError::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity {
        device: 1,
        inode: 2,
        size: 3,
        seconds: 4,
        nanoseconds: 5,
        changed_seconds: 6,
        changed_nanoseconds: 7,
        sum: 8,
    };

    #[test]
    fn records_keep_the_end_of_long_paths() {
        let digest = "d".repeat(64);
        let back = |path: &str| {
            let name = record_name(&IDENTITY, &digest, Path::new(path));
            assert!(name.len() <= NAME_MAX, "{name:?}");
            let (identity, is, source) = parse(&name).unwrap();
            assert_eq!((identity, is), (IDENTITY, digest.clone()));
            assert!(is_source(&source, Path::new(path)));
            assert!(!is_source(&source, Path::new("/models/other")));
            source.into_string().unwrap()
        };
        assert_eq!(back("/models/50%=x"), "/models/50%=x");
        let long = back(&format!("/{}/model", "%/".repeat(200)));
        assert!(
            long.starts_with("...") && long.ends_with("%//model"),
            "{long}"
        );
    }

    #[test]
    fn the_longest_identity_fits() {
        let identity = Identity {
            device: u64::MAX,
            inode: u64::MAX,
            size: u64::MAX,
            seconds: -1,
            nanoseconds: u32::MAX,
            changed_seconds: -1,
            changed_nanoseconds: u32::MAX,
            sum: u64::MAX,
        };
        let name = record_name(&identity, &"d".repeat(64), Path::new("/models/model"));
        assert_eq!(parse(&name).unwrap().2, "/models/model");
    }

    #[test]
    fn keys_say_nothing_and_differ() {
        let other = Identity {
            changed_nanoseconds: 8,
            ..IDENTITY
        };
        assert_eq!(key(&IDENTITY).len(), 64);
        assert_ne!(key(&IDENTITY), key(&other));
    }
}
