// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the lines that are added to a file, such as the access log of a server.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that grows. A file that is renamed and begun anew, or truncated, is followed.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: File,
    read: u64,
    lines: u64,
}

impl Lines {
    /// Counts from the present end of the file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Lines> {
        let mut file = File::open(path)?;
        let read = file.seek(SeekFrom::End(0))?;
        Ok(Lines {
            path: path.to_owned(),
            file,
            read,
            lines: 0,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of lines since [`Lines::open`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn count(&mut self) -> io::Result<u64> {
        if self.file.metadata()?.size() < self.read {
            self.read = self.file.seek(SeekFrom::Start(0))?;
        }
        self.drain()?;
        if let Some(next) = self.successor()? {
            (self.file, self.read) = (next, 0);
            self.drain()?;
        }
        Ok(self.lines)
    }

    /// The file that has taken this one's place.
    fn successor(&self) -> io::Result<Option<File>> {
        // It may be missing for a moment.
        let Ok(next) = File::open(&self.path) else {
            return Ok(None);
        };
        let (own, new) = (self.file.metadata()?, next.metadata()?);
        let same = own.ino() == new.ino() && own.dev() == new.dev();
        Ok((!same).then_some(next))
    }

    fn drain(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let got = self.file.read(&mut bytes)?;
            if got == 0 {
                return Ok(());
            }
            self.read += got as u64;
            let ends = bytes[..got].iter().filter(|byte| **byte == b'\n');
            self.lines += ends.count() as u64;
        }
    }
}

#[cfg(test)]
mod tests;
