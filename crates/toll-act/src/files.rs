// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads input files, and writes results atomically.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use toll_model::error::FormatError;

use crate::error::UserError;

/// Reads a file in one of tollfree's formats.
///
/// # Errors
/// [`UserError::Input`] if it is in another one.
pub fn read<T>(path: &Path, parse: impl Fn(&[u8]) -> Result<T, FormatError>) -> Result<T> {
    let bytes = fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    parse(&bytes).map_err(|source| in_file(path, source))
}

/// The error for a file with wrong content.
pub fn in_file(path: &Path, source: FormatError) -> anyhow::Error {
    let path = path.to_owned();
    UserError::Input { path, source }.into()
}

/// Checks that a result can be written to `path`, before the work for it is done.
///
/// # Errors
/// [`UserError::Usage`] if the file exists and `force` is not set; otherwise the reason why its
/// directory cannot be written.
pub fn check_writable(path: &Path, force: bool) -> Result<()> {
    if path.is_dir() {
        return Err(UserError::Usage(format!("{}: is a directory", path.display())).into());
    }
    if path.is_file() && !force {
        let message = format!("{}: exists already (--force overwrites it)", path.display());
        return Err(UserError::Usage(message).into());
    }
    if is_special(path) {
        return Ok(());
    }
    tempfile::NamedTempFile::new_in(directory(path))
        .map(drop)
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// Writes a file atomically: to a temporary file in the same directory, synced, then renamed.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let attempt = || -> io::Result<()> {
        if is_special(path) {
            return fs::write(path, content);
        }
        let mode = Permissions::from_mode(0o666);
        let mut file = tempfile::Builder::new()
            .permissions(mode)
            .tempfile_in(directory(path))?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    attempt().with_context(|| format!("{}: cannot be written", path.display()))
}

/// Whether the path is a pipe, a device (`/dev/stdout`) or an open descriptor (`/dev/fd/3`), which
/// is written in place instead of replaced.
fn is_special(path: &Path) -> bool {
    let directories = ["/dev/fd", "/proc/self/fd"];
    if path.parent().is_some_and(|parent| {
        directories
            .iter()
            .any(|directory| parent == Path::new(directory))
    }) {
        return true;
    }
    fs::metadata(path).is_ok_and(|meta| !meta.is_file())
}

fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
