// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the file of a program by its name.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::UserError;

/// Finds a program as execvp(3) does. Like a shell, skips directories of PATH that are not
/// readable.
///
/// # Errors
/// [`UserError::NotFound`], or [`UserError::NotExecutable`] if no file of that name is executable.
pub fn find_program(name: &OsStr) -> Result<PathBuf, UserError> {
    let program = || name.to_string_lossy().into_owned();
    let is_path = has_slash(name);
    let mut refused = None;
    for path in candidates(name) {
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_dir() && is_path => refused = Some("is a directory"),
            Ok(meta) if meta.is_dir() => {}
            Ok(_) if executable(&path) => return Ok(path),
            Ok(_) => refused = Some("permission denied"),
            Err(error) if is_path && error.kind() == io::ErrorKind::PermissionDenied => {
                refused = Some("permission denied");
            }
            Err(_) => {}
        }
    }
    match refused {
        Some(detail) => Err(UserError::NotExecutable {
            program: program(),
            detail: detail.to_owned(),
        }),
        None => Err(UserError::NotFound { program: program() }),
    }
}

fn has_slash(name: &OsStr) -> bool {
    name.as_encoded_bytes().contains(&b'/')
}

/// The paths that a command name can mean, in order.
fn candidates(name: &OsStr) -> Vec<PathBuf> {
    if has_slash(name) {
        return vec![PathBuf::from(name)];
    }
    if name.is_empty() {
        return Vec::new();
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path)
        .map(|directory| match directory.as_os_str().is_empty() {
            true => Path::new(".").join(name),
            false => directory.join(name),
        })
        .collect()
}

fn executable(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}
