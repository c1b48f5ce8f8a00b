// SPDX-License-Identifier: MIT OR Apache-2.0
//! Morsels: large read-only memory objects that are files of a file system in memory.
//!
//! A folder in a mount of morselfs, tmpfs or hugetlbfs is a [`Store`]. What is copied into
//! it is a cache of files: each copy has a second name in the hidden folder `.tollfree`,
//! which says to its owner of which file, in which state, it is a copy ([`Identity`]). A copy gets
//! its first name when it is whole and sealed, so what an interrupted or failed copy leaves
//! behind is nothing. It is readable by its owner, and by those who can reach and read the file.
//!
//! | module | does |
//! |---|---|
//! | [`backing`] | which file system a folder is on, and what its pages are |
//! | [`fill`] | copies a file into memory past the page cache |
//! | [`identity`] | tells one state of a file from all others |
//! | [`lock`] | one copy at a time for each user |
//! | [`mount`] | mounts the best file system that the kernel has |
//! | [`pages`] | the sizes of a morsel's pages, and who maps it |
//! | [`readers`] | who may read a copy |
//! | [`records`] | which copy is of which file |
//! | [`room`] | how much fits, and what has to go first |
//! | [`source`] | a file that is to be served |
//! | [`store`] | the morsels of a folder |

pub mod backing;
mod fill;
pub mod identity;
mod lock;
pub mod mount;
pub mod pages;
mod readers;
mod records;
pub mod room;
pub mod source;
pub mod store;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use toll_model::units::format_size;

pub use backing::{Backing, Kind};
pub use identity::Identity;
pub use source::Source;
pub use store::{Morsel, Put, Request, Store};

/// What cannot be done with a morsel, and why.
#[derive(Debug, Error)]
pub enum MorselError {
    #[error("{}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: is on {is}: morsels need a folder on morselfs, tmpfs or hugetlbfs", path.display())]
    NotMemory { path: PathBuf, is: String },
    #[error("{}: {why}", path.display())]
    Unfit { path: PathBuf, why: &'static str },
    #[error("{}: there is no such morsel", .0.display())]
    NoSuch(PathBuf),
    #[error("{name:?} cannot name a morsel: {why}")]
    Name { name: String, why: &'static str },
    #[error("{}: is there already, as a morsel of {of}", path.display())]
    Taken { path: PathBuf, of: String },
    #[error("{}: no room for {}: {why}", path.display(), format_size(*needed))]
    Full {
        path: PathBuf,
        needed: u64,
        why: String,
    },
    #[error("{}: {why}", path.display())]
    Foreign { path: PathBuf, why: String },
    #[error("{}: still locked by {holder} after {wait:?}: another copy of yours is being made, it seems", path.display())]
    Locked {
        path: PathBuf,
        /// For people.
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

/// Adds the path to what the system said of it.
fn at<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> MorselError {
    move |error| MorselError::Io {
        path: path.to_owned(),
        source: error.into(),
    }
}
