// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a copy in an image records of its source: the same names as in a [`super::Store`], so that
//! the copy serves the source once the image is mounted.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

use blake3::{Hash, Hasher};

pub use super::hidden::{HIDDEN, SHARED};
use super::lease::is_unwritten;
use super::put::default_names;
use super::readers::{self, Readers};
use super::record::{is_source, key, parse, record_name};
use super::store::check_name;
use super::{Identity, MorselError, Source, at};

/// The source of a copy.
#[derive(Debug)]
pub struct Origin<'a> {
    source: &'a Source,
    is_unwritten: bool,
    pub readers: Readers,
}

impl<'a> Origin<'a> {
    /// Inspects a source before it is copied.
    pub fn of(source: &'a Source) -> Origin<'a> {
        Origin {
            source,
            is_unwritten: is_unwritten(&source.file),
            readers: readers::of(source),
        }
    }

    /// Names for the copy, the best first.
    ///
    /// # Errors
    /// The requested name cannot name a morsel.
    pub fn names(&self, asked: Option<&OsStr>) -> Result<Vec<OsString>, MorselError> {
        match asked {
            None => Ok(default_names(self.source)),
            Some(name) => check_name(name).map(|()| vec![name.to_owned()]),
        }
    }

    /// The name of its record.
    pub fn record(&self, digest: Hash) -> OsString {
        record_name(&self.source.identity, &digest.to_hex(), &self.source.path)
    }

    /// The name by which other users find it.
    pub fn key(&self) -> OsString {
        key(&self.source.identity)
    }

    /// Whether a record is that of a copy of the source as it is now.
    pub fn is_current(&self, record: &OsStr) -> bool {
        parse(record).is_some_and(|(identity, ..)| identity == self.source.identity)
    }

    /// Whether a record is that of a copy of an earlier state of the source: by its path, because
    /// the numbers of its device and inode may be those of another file after a reboot.
    pub fn is_older(&self, record: &OsStr) -> bool {
        let (path, identity) = (&self.source.path, &self.source.identity);
        parse(record).is_some_and(|(was, _, from)| was != *identity && is_source(&from, path))
    }

    /// The group of the source.
    pub fn group(&self) -> io::Result<u32> {
        Ok(self.source.file.metadata()?.gid())
    }

    /// Checks that the source did not change while it was copied; its content has this digest.
    ///
    /// # Errors
    /// [`MorselError::Changing`], or it cannot be read.
    pub fn check(&self, digest: Hash) -> Result<(), MorselError> {
        let path = &self.source.path;
        let again = || digest_of(&self.source.file, self.source.identity.size);
        let is_same = self.is_unwritten || again().map_err(at(path))? == digest;
        match is_same && Identity::of(&self.source.file).map_err(at(path))? == self.source.identity
        {
            true => Ok(()),
            false => Err(MorselError::Changing(path.clone())),
        }
    }
}

/// Whether a name is that of a record.
pub fn is_record(name: &OsStr) -> bool {
    parse(name).is_some()
}

/// Reads a file from its begin, and returns the digest of its content.
fn digest_of(file: &File, size: u64) -> io::Result<Hash> {
    let mut hasher = Hasher::new();
    hasher.update_reader(FromBegin::of(file).take(size))?;
    Ok(hasher.finalize())
}

/// Reads a file that others may read too, without its position.
#[derive(Debug)]
pub struct FromBegin<'a> {
    file: &'a File,
    pub at: u64,
}

impl<'a> FromBegin<'a> {
    pub fn of(file: &'a File) -> FromBegin<'a> {
        FromBegin { file, at: 0 }
    }
}

impl Read for FromBegin<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let got = std::os::unix::fs::FileExt::read_at(self.file, bytes, self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}
