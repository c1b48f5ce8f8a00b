// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies files into a store.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{Timespec, Timestamps, futimens};
use rustix::io::Errno;

use super::fill::{Copied, Copy};
use super::hidden::Hidden;
use super::lease::is_unwritten;
use super::place::{is_there, link, user};
use super::readers::{self, Readers};
use super::record::{is_older, key, record_name};
use super::store::{check_name, files, now};
use super::{Identity, Kind, Morsel, MorselError, Source, Store, at, lock};

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
        let record = record_name(&source.identity, &filled.digest, &source.path);
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
        let names = match asked {
            Some(name) => vec![name.to_owned()],
            None => {
                let named = files(&self.directory)?
                    .into_iter()
                    .find(|path| morsel.is_at(path));
                if let Some(path) = named {
                    return known(path);
                }
                default_names(source)
            }
        };
        for name in &names {
            let path = self.directory.join(name);
            match link(file, &path) {
                Ok(()) => {}
                Err(Errno::EXIST) => {
                    if !morsel.is_at(&path) {
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

    /// Removes copies of earlier states of a file.
    fn remove_stale(&self, source: &Source) -> Result<Vec<Morsel>, MorselError> {
        let is_stale = |morsel: &Morsel| {
            let was = morsel.identity.as_ref();
            was.is_some_and(|was| is_older(was, morsel.source.as_deref(), source))
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
}

/// Returns the source's own name, or a unique variant of it.
pub(super) fn default_names(source: &Source) -> Vec<OsString> {
    let name = source.path.file_name().unwrap_or_default();
    let mut other = name.to_owned();
    other.push(format!("~{:08x}", source.identity.sum as u32));
    vec![name.to_owned(), other]
}
