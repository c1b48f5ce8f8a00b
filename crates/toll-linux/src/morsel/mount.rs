// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mounts the best file system for morsels that the kernel supports.

use std::ffi::CString;
use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use toll_model::REGION;

use super::hidden::Hidden;
use super::{Backing, Kind, MorselError, Store, at};
use crate::{Root, sys};

/// A file system that was not mounted, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub kind: Kind,
    pub why: String,
}

/// What [`mount_best`] did.
#[derive(Debug)]
pub enum Mounted {
    /// The mounted file system, and the better ones that failed.
    Now(Backing, Vec<Refused>),
    /// The directory was already on a suitable file system.
    Before(Backing),
    /// The kernel supports none of them, or lacks their requirements.
    Nothing(Vec<Refused>),
    /// Not permitted to mount.
    Forbidden,
}

/// Mounts the first of `kinds` that this kernel supports at `point`, which is created if necessary.
/// `size` is the maximum size in bytes; without it, the file system's default applies.
///
/// # Errors
/// `point` cannot be created, or is not a directory.
/// `point` cannot be made, or is not a directory.
pub fn mount_best(point: &Path, kinds: &[Kind], size: Option<u64>) -> Result<Mounted, MorselError> {
    fs::create_dir_all(point).map_err(at(point))?;
    let point = fs::canonicalize(point).map_err(at(point))?;
    let root = Root::system();
    if let Some(backing) = Backing::of(&root, &point)
        .ok()
        .filter(|it| it.point == point)
    {
        return Ok(Mounted::Before(backing));
    }
    let mut refused = Vec::new();
    for &kind in kinds {
        let why = match lacks(&root, kind, size) {
            Some(why) => why,
            None => match mount_one(&point, kind, size) {
                Ok(()) => {
                    let store = Store::open(&point)?;
                    // Owned by root: the owner of the directory may remove other users' files.
                    Hidden::make(&store.directory)?;
                    return Ok(Mounted::Now(store.backing, refused));
                }
                Err(Errno::PERM | Errno::ACCESS) => return Ok(Mounted::Forbidden),
                Err(Errno::NODEV) => "this kernel does not support it".to_owned(),
                Err(Errno::INVAL) if kind == Kind::Tmpfs => {
                    "this kernel has no huge pages in tmpfs (CONFIG_TRANSPARENT_HUGEPAGE)"
                        .to_owned()
                }
                Err(error) => error.to_string(),
            },
        };
        refused.push(Refused { kind, why });
    }
    Ok(Mounted::Nothing(refused))
}

/// Returns why mounting a file system would be useless.
fn lacks(root: &Root, kind: Kind, size: Option<u64>) -> Option<String> {
    if kind != Kind::Hugetlbfs {
        return None;
    }
    let pools = sys::hugetlb(root);
    let pool = pools.iter().find(|pool| pool.page == REGION)?;
    let needed = size.map_or(1, |size| size.div_ceil(REGION));
    let has = pool.free + pool.overcommit;
    (has < needed).then(|| {
        format!(
            "its pool has {has} of the {needed} pages of 2 MiB: `sysctl vm.nr_hugepages={}`",
            pool.total - pool.free + needed
        )
    })
}

fn mount_one(point: &Path, kind: Kind, size: Option<u64>) -> Result<(), Errno> {
    // strictatime: eviction needs the time of every use.
    let flags =
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::STRICTATIME;
    let options = CString::new(options(kind, size)).map_err(|_| Errno::INVAL)?;
    mount("tollfree", point, kind.name(), flags, options.as_c_str())
}

/// World-writable with the sticky bit.
fn options(kind: Kind, size: Option<u64>) -> String {
    let mut options = match kind {
        Kind::Tmpfs => "mode=1777,huge=always".to_owned(),
        Kind::Hugetlbfs => "mode=1777,pagesize=2M".to_owned(),
        Kind::Morselfs => "mode=1777".to_owned(),
    };
    if let Some(size) = size {
        options += &format!(",size={size}");
    }
    options
}

#[cfg(test)]
mod tests;
