// SPDX-License-Identifier: MIT OR Apache-2.0
//! Morsels: large read-only memory objects that are files of a memory file system.
//!
//! A directory in a mount of morselfs, tmpfs or hugetlbfs is a [`Store`]. Copies in it are a cache
//! of files: each copy has a second name in the hidden directory `.tollfree`, which tells its owner
//! the source file and its state ([`Identity`]). A copy gets its first name when it is complete and
//! sealed, so an interrupted or failed copy leaves nothing behind. A copy is readable by its owner,
//! and by users that can reach and read the source.
//!
//! | module | does |
//! |---|---|
//! | [`backing`] | finds the file system of a directory and its page size |
//! | `fill` | copies a file into memory past the page cache |
//! | `hidden` | the hidden directory of a store |
//! | [`identity`] | identifies one state of a file |
//! | `lease` | tells whether other processes use a file |
//! | `lock` | limits each user to one copy at a time |
//! | [`mount`] | mounts the best file system that the kernel has |
//! | [`origin`] | what a copy in an image records of its source |
//! | [`pages`] | page sizes of a morsel, and the processes that map it |
//! | `place` | a directory that is opened without following links |
//! | `put` | copies a file into a store |
//! | `readers` | decides the users that may read a copy |
//! | `record` | the name that records the source file of a copy |
//! | [`room`] | computes free space and selects morsels to remove |
//! | `seal` | makes a morsel immutable |
//! | [`source`] | a file to be served from memory |
//! | [`store`] | the morsels of a directory |

pub mod backing;
mod fill;
mod hidden;
pub mod identity;
mod lease;
mod lock;
pub mod mount;
pub mod origin;
pub mod pages;
mod place;
mod put;
mod readers;
mod record;
pub mod room;
mod seal;
pub mod source;
pub mod store;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use toll_model::units::format_size;

pub use backing::{Backing, Kind};
pub use identity::Identity;
pub use put::{Put, Request};
pub use source::Source;
pub use store::{Morsel, Store};

/// Why an operation on a morsel failed.
#[derive(Debug, Error)]
pub enum MorselError {
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: is on {is}: morsels need a directory on morselfs, tmpfs or hugetlbfs", path.display())]
    NotMemory { path: PathBuf, is: String },
    #[error("{}: {why}", path.display())]
    Unfit { path: PathBuf, why: &'static str },
    #[error("{}: no such morsel", .0.display())]
    NoSuch(PathBuf),
    #[error("{name:?} cannot name a morsel: {why}")]
    Name { name: String, why: &'static str },
    #[error("{}: exists already as a morsel of {of}", path.display())]
    Taken { path: PathBuf, of: String },
    #[error("{}: no room for {}: {why}", path.display(), format_size(*needed))]
    Full {
        path: PathBuf,
        needed: u64,
        why: String,
    },
    #[error("{}: {why}", path.display())]
    Foreign { path: PathBuf, why: String },
    #[error("{}: still locked by {holder} after {wait:?}: another copy of yours seems to be in progress", path.display())]
    Locked {
        path: PathBuf,
        /// Description of the holder.
        holder: String,
        wait: Duration,
    },
    #[error("{}: changes while it is copied", .0.display())]
    Changing(PathBuf),
    #[error("{}: is still mapped writable, or otherwise in use by a writer", .0.display())]
    Busy(PathBuf),
    #[error("interrupted")]
    Interrupted,
}

/// Adds the path to a system error.
fn at<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> MorselError {
    move |error| MorselError::Io {
        path: path.to_owned(),
        source: error.into(),
    }
}

#[cfg(test)]
mod tests;
