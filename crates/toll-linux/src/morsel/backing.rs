// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file system of a directory and its page size.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toll_model::{PAGE, REGION};

use super::{MorselError, at};
use crate::Root;
use crate::proc::{self, Mount};

/// File systems that can hold morsels, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Morselfs,
    Tmpfs,
    Hugetlbfs,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Morselfs, Kind::Tmpfs, Kind::Hugetlbfs];

    /// Name as in `/proc/filesystems`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Morselfs => "morselfs",
            Kind::Tmpfs => "tmpfs",
            Kind::Hugetlbfs => "hugetlbfs",
        }
    }
}

/// The file system that holds the morsels of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backing {
    pub kind: Kind,
    /// Mount point.
    pub point: PathBuf,
    /// Largest page size that it uses, bytes.
    pub page: u64,
}

impl Backing {
    /// Looks up the mount of a directory.
    ///
    /// # Errors
    /// The directory does not exist, or is on another file system ([`MorselError::NotMemory`]).
    pub fn of(root: &Root, directory: &Path) -> Result<Backing, MorselError> {
        let meta = fs::metadata(directory).map_err(at(directory))?;
        if !meta.is_dir() {
            let (path, why) = (directory.to_owned(), "is not a directory");
            return Err(MorselError::Unfit { path, why });
        }
        let device = (libc::major(meta.dev()), libc::minor(meta.dev()));
        let mounts = proc::own_mounts(root).unwrap_or_default();
        // A file system may be mounted several times.
        let mount = mounts
            .into_iter()
            .filter(|mount| mount.device == device)
            .max_by_key(|mount| directory.starts_with(&mount.point));
        mount
            .as_ref()
            .and_then(Backing::on)
            .ok_or_else(|| MorselError::NotMemory {
                path: directory.to_owned(),
                is: mount.map_or("another file system".to_owned(), |mount| mount.kind),
            })
    }

    /// Returns the backing by a mount; `None` if it cannot hold morsels.
    fn on(mount: &Mount) -> Option<Backing> {
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == mount.kind)?;
        let huge = mount.option("huge");
        let page = match kind {
            Kind::Morselfs => REGION,
            Kind::Tmpfs if matches!(huge, Some("always" | "within_size")) => REGION,
            Kind::Tmpfs => PAGE,
            Kind::Hugetlbfs => toll_model::units::parse_size(mount.option("pagesize")?).ok()?,
        };
        Some(Backing {
            kind,
            point: mount.point.clone(),
            page,
        })
    }

    /// Returns the smallest page size of a morsel, bytes.
    pub fn smallest_page(&self) -> u64 {
        match self.kind {
            Kind::Hugetlbfs => self.page,
            Kind::Morselfs | Kind::Tmpfs => PAGE,
        }
    }

    /// Describes the file system and its pages for messages.
    pub fn describe(&self) -> String {
        let pages = match self.page {
            PAGE if self.kind == Kind::Tmpfs => {
                "4 KiB pages: not mounted with huge=always".to_owned()
            }
            page => format!("{} pages", toll_model::units::format_size(page)),
        };
        format!("{}, {pages}", self.kind.name())
    }
}

#[cfg(test)]
mod tests;
