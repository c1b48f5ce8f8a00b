// SPDX-License-Identifier: MIT OR Apache-2.0
//! The directory of the results: `./tollfree-PROGRAM-TIME` unless another is given.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use jiff::Timestamp;
use jiff::tz::Offset;
use toll_act::error::UserError;
use toll_act::files;

/// A directory of results.
#[derive(Debug, Clone)]
pub struct Directory(PathBuf);

impl Directory {
    /// Creates the directory, before any work is done.
    ///
    /// # Errors
    /// [`UserError::Usage`] if the given directory exists and is not empty, without `force`.
    pub fn create(asked: Option<&Path>, program: &str, force: bool) -> Result<Directory> {
        match asked {
            Some(path) => Directory::take(path, force),
            None => Directory::fresh(Path::new("."), program, SystemTime::now()),
        }
    }

    /// The directory of an earlier tune, to continue from.
    pub fn again(path: &Path) -> Directory {
        Directory(path.to_owned())
    }

    fn take(path: &Path, force: bool) -> Result<Directory> {
        let shown = path.display();
        match fs::read_dir(path) {
            Ok(_) if !force && holds_something(path) => {
                let message = format!("{shown}: exists already (--force overwrites its contents)");
                Err(UserError::Usage(message).into())
            }
            Ok(_) => Ok(Directory(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(UserError::Usage(format!("{shown}: is not a directory")).into())
            }
            Err(_) => {
                fs::create_dir_all(path).with_context(|| format!("{shown}: cannot be created"))?;
                Ok(Directory(path.to_owned()))
            }
        }
    }

    /// Creates a directory with an unused name; two runs within one second get two.
    fn fresh(parent: &Path, program: &str, now: SystemTime) -> Result<Directory> {
        let base = format!("tollfree-{}-{}", plain(program), stamp(now));
        for attempt in 1.. {
            let name = if attempt == 1 {
                base.clone()
            } else {
                format!("{base}-{attempt}")
            };
            let path = parent.join(name);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Directory(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| {
                        format!(
                            "{}: cannot be created (-o selects another place)",
                            path.display()
                        )
                    });
                }
            }
        }
        unreachable!("there are more names than directories")
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Removes a file, if it exists.
    pub fn remove(&self, name: &str) -> Result<()> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{}: cannot be removed", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file atomically.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self.file(name);
        files::write(&path, content)?;
        Ok(path)
    }
}

fn holds_something(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

/// The program's base name without characters that need quoting in a shell.
fn plain(program: &str) -> String {
    let base = program.rsplit('/').next().unwrap_or(program);
    let fine = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    let name: String = base
        .chars()
        .map(|c| if fine(c) { c } else { '_' })
        .take(60)
        .collect();
    if name.is_empty() {
        "program".to_owned()
    } else {
        name
    }
}

/// `20251121-090501`, UTC.
fn stamp(time: SystemTime) -> String {
    // A wrong clock is not an error.
    let time = Timestamp::try_from(time).unwrap_or_default();
    let at = Offset::UTC.to_datetime(time);
    // Field by field: the library's own formatter makes the program a quarter of a megabyte larger.
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
}

#[cfg(test)]
mod tests;
