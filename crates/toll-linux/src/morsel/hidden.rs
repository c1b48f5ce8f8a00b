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

use std::ffi::{CString, OsStr};
use std::fs::Permissions;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{Mode, fstat};

use super::place::{Place, user};
use super::{MorselError, at};

/// Name of the hidden directory of a store.
pub const HIDDEN: &str = ".tollfree";
/// Root's directory in it for shared copies.
pub const SHARED: &str = "shared";

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
        let stat = fstat(&place).map_err(at(&place.path))?;
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
