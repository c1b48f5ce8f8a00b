// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file system of a directory and its page size.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toll_model::{PAGE, REGION};

use super::{MorselError, at};
use crate::Root;

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
        let mounts = root.read("/proc/self/mountinfo").unwrap_or_default();
        let device = format!("{}:{}", libc::major(meta.dev()), libc::minor(meta.dev()));
        let mounts = mounts.lines().filter_map(Mount::parse);
        // A file system may be mounted several times.
        let mount = mounts
            .filter(|mount| mount.device == device)
            .max_by_key(|mount| directory.starts_with(unescape(mount.point)));
        mount
            .as_ref()
            .and_then(Mount::backing)
            .ok_or_else(|| MorselError::NotMemory {
                path: directory.to_owned(),
                is: mount.map_or("another file system".to_owned(), |mount| {
                    mount.kind.to_owned()
                }),
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

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    device: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl Mount<'_> {
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let device = mount.next()?;
        let point = mount.nth(1)?;
        let mut file_system = file_system.split(' ');
        Some(Mount {
            device,
            point,
            kind: file_system.next()?,
            options: file_system.nth(1)?,
        })
    }

    fn backing(&self) -> Option<Backing> {
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == self.kind)?;
        let option = |name: &str| {
            let mut options = self.options.split(',');
            options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
        };
        let page = match kind {
            Kind::Morselfs => REGION,
            Kind::Tmpfs if matches!(option("huge"), Some("always" | "within_size")) => REGION,
            Kind::Tmpfs => PAGE,
            Kind::Hugetlbfs => toll_model::units::parse_size(option("pagesize")?).ok()?,
        };
        Some(Backing {
            kind,
            point: unescape(self.point),
            page,
        })
    }
}

/// Decodes a path as the kernel prints it: blanks and backslashes are octal escapes.
fn unescape(path: &str) -> PathBuf {
    let mut rest = path.as_bytes();
    let mut plain = Vec::with_capacity(rest.len());
    while let [byte, tail @ ..] = rest {
        let code = tail
            .get(..3)
            .filter(|_| *byte == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(*byte));
        rest = &tail[if code.is_some() { 3 } else { 0 }..];
    }
    OsString::from_vec(plain).into()
}

#[cfg(test)]
mod tests;
