// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images and devices that a command changes: what it changes is there as a whole after a crash, or
//! not at all.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use toll_act::error::UserError;
use toll_image::layout::{PAGE, TIME_STEPS, Time, inode, kind};
use toll_image::ops::{Fs, OpError};
use toll_image::recover::Unrecovered;
use toll_image::{Image, Survey, survey};
use toll_linux::morsel::origin;
use toll_model::numbers::bytes;

use super::{in_use, open, refused};

/// An image with its file system.
pub struct Writing {
    path: PathBuf,
    pub fs: Fs<Image>,
}

impl Writing {
    /// Completes what a crash interrupted, as a mount does.
    pub fn mount(path: &Path) -> Result<Writing> {
        let image = open(path, true)?;
        // A device was opened for this process alone.
        flock(image.file(), FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| in_use(path, std::io::Error::from_raw_os_error(libc::EBUSY)))?;
        let mut fs = Fs::mount(image).map_err(|error| match error {
            Unrecovered::Refused(refusal) => refused(path, refusal),
            damaged => {
                let shown = path.display();
                let what = format!("{shown}: {damaged}; `tollfree morsel fsck {shown}` tells more");
                UserError::UnfitFile(what).into()
            }
        })?;
        fs.now = time(SystemTime::now());
        Ok(Writing {
            path: path.to_owned(),
            fs,
        })
    }

    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Explains why an operation failed.
    pub fn done<T>(&self, result: Result<T, OpError>) -> Result<T> {
        let shown = self.shown();
        result.map_err(|error| match error {
            OpError::NoSpace => UserError::Missing(format!("{shown}: is full")).into(),
            error => anyhow::Error::new(error).context(shown),
        })
    }

    /// Checks that a file fits.
    pub fn check_room(&self, size: u64) -> Result<()> {
        /// New pages of inodes and names, with what leads to them.
        const MORE: u64 = 16;
        let owned = self.fs.owned();
        let free = owned.pages() - owned.count();
        let pages = size.div_ceil(PAGE);
        if pages + pages / 256 + MORE <= free {
            return Ok(());
        }
        let (shown, free) = (self.shown(), bytes(free * PAGE));
        let what = format!("{shown}: no room for {}: {free} are free", bytes(size));
        Err(UserError::Missing(what).into())
    }

    /// A directory, which is made if it does not exist.
    pub fn directory(&mut self, parent: u64, name: &str, rights: u16) -> Result<u64> {
        if let Ok(number) = self.fs.lookup(parent, name.as_bytes()) {
            return Ok(number);
        }
        let mode = kind::DIRECTORY | rights;
        let made = self.fs.create(parent, name.as_bytes(), mode, 0);
        let number = self.done(made)?;
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let owned = self.fs.chown(number, user.as_raw(), group.as_raw());
        self.done(owned)?;
        Ok(number)
    }

    /// The inode of a path.
    pub fn find(&self, path: &[u8]) -> Option<u64> {
        let parts = path.split(|byte| *byte == b'/');
        let mut parts = parts.filter(|part| !part.is_empty());
        parts.try_fold(inode::FIRST, |at, part| self.fs.lookup(at, part).ok())
    }

    /// Removes a file with all of its names, its record last: what a crash leaves is known by it.
    pub fn remove(&mut self, number: u64) -> Result<()> {
        for (parent, name) in in_order_of_removal(self.fs.names_for(number)) {
            let removed = self.fs.unlink(parent, &name);
            self.done(removed)?;
        }
        Ok(())
    }

    /// What the image holds now.
    pub fn finish(self) -> Result<(Image, Survey)> {
        let image = self.fs.into_medium();
        let found = survey(&image).map_err(|refusal| refused(&self.path, refusal));
        Ok((image, found.context("after the change")?))
    }
}

fn in_order_of_removal(mut names: Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)> {
    names.sort_by_key(|(_, name)| origin::is_record(OsStr::from_bytes(name)));
    names
}

/// The time as an image records it.
pub fn time(at: SystemTime) -> Time {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Time {
        seconds: since.as_secs() as i64,
        steps: u64::from(since.subsec_nanos()) / (1_000_000_000 / TIME_STEPS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_removed_last() {
        let record = b"15-2-9-6b.1a-6b.1a-00000000000000aa@00ff=%2ftmp%2fmodel";
        let names = [(9, &record[..]), (1, b"model"), (8, b"0ff1ce")];
        let names = names.map(|(parent, name)| (parent, name.to_vec()));
        let parents = in_order_of_removal(names.to_vec());
        let parents: Vec<u64> = parents.into_iter().map(|(parent, _)| parent).collect();
        assert_eq!(parents, [1, 8, 9]);
    }
}
