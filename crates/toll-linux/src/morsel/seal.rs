// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes morsels immutable.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{SealFlags, fcntl_add_seals};
use rustix::io::Errno;

use super::lease::lease;
use super::{Kind, Morsel, MorselError, Store, at};

impl Store {
    /// Makes a morsel immutable: permanently on morselfs, by its mode bits elsewhere.
    ///
    /// # Errors
    /// No such morsel, a process still writes to it, or it belongs to another user.
    pub fn seal(&self, name: &OsStr) -> Result<Morsel, MorselError> {
        let morsel = self.get(name)?;
        if morsel.sealed {
            return Ok(morsel);
        }
        let file = OpenOptions::new()
            .read(true)
            .write(self.backing.kind == Kind::Morselfs)
            .open(&morsel.path)
            .map_err(at(&morsel.path))?;
        let mode = file.metadata().map_err(at(&morsel.path))?.mode();
        let can_write = || lease(&file, libc::F_RDLCK) == Err(Errno::AGAIN);
        if self.backing.kind != Kind::Morselfs && can_write() {
            return Err(MorselError::Busy(morsel.path));
        }
        self.seal_file(&file, &morsel.path, mode & 0o555)?;
        self.get(name)
    }

    pub(super) fn seal_file(&self, file: &File, path: &Path, mode: u32) -> Result<(), MorselError> {
        file.set_permissions(Permissions::from_mode(mode))
            .map_err(at(path))?;
        if self.backing.kind == Kind::Morselfs {
            let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
            return match fcntl_add_seals(file, all) {
                Err(Errno::BUSY) => Err(MorselError::Busy(path.to_owned())),
                result => result.map_err(at(path)),
            };
        }
        Ok(())
    }
}
