// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/PID/mountinfo`: the mounts that a process sees.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use crate::Root;

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the file system's device.
    pub device: (u32, u32),
    /// The directory of the file system that is mounted.
    pub root: PathBuf,
    pub point: PathBuf,
    /// Type of the file system: `ext4`, `tmpfs`, `cgroup2`.
    pub kind: String,
    /// Options of the file system, separated by commas.
    pub options: String,
}

impl Mount {
    /// Whether an option is set that has no value.
    pub fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|it| it == option)
    }

    /// Returns the value of an option.
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.split(',');
        options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// Returns where a path of the file system is visible; `None` if it is outside of this mount.
    pub fn shows(&self, path: &Path) -> Option<PathBuf> {
        let rest = path.strip_prefix(&self.root).ok()?;
        // Above the root of a namespace.
        if rest.components().any(|part| part == Component::ParentDir) {
            return None;
        }
        Some(match rest.as_os_str().is_empty() {
            true => self.point.clone(),
            false => self.point.join(rest),
        })
    }

    /// Parses a line; `None` if it is not one. Optional fields end with a dash:
    /// proc_pid_mountinfo(5).
    pub(crate) fn parse(line: &[u8]) -> Option<Mount> {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let dash = fields.iter().position(|field| *field == b"-")?;
        let text = |at: usize| Some(String::from_utf8_lossy(fields.get(at)?).into_owned());
        let device = text(2)?;
        let (major, minor) = device.split_once(':')?;
        Some(Mount {
            device: (major.parse().ok()?, minor.parse().ok()?),
            root: OsString::from_vec(unescaped(fields.get(3)?)).into(),
            point: OsString::from_vec(unescaped(fields.get(4)?)).into(),
            kind: text(dash + 1)?,
            options: text(dash + 3)?,
        })
    }
}

/// Reads the mounts of this process.
///
/// # Errors
/// The file cannot be read.
pub fn own_mounts(root: &Root) -> io::Result<Vec<Mount>> {
    read(root, "self")
}

/// Reads the mounts that a process sees, in the order in which they were mounted. Lines that are
/// not valid are left out.
///
/// # Errors
/// No such process, or not permitted.
pub fn mounts(root: &Root, pid: u32) -> io::Result<Vec<Mount>> {
    read(root, &pid.to_string())
}

fn read(root: &Root, process: &str) -> io::Result<Vec<Mount>> {
    let text = std::fs::read(root.path(format!("/proc/{process}/mountinfo")))?;
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(Mount::parse).collect())
}

/// Replaces the kernel's escapes: white space and backslashes are three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut rest = text;
    let mut plain = Vec::with_capacity(text.len());
    while let [byte, tail @ ..] = rest {
        let code = tail
            .get(..3)
            .filter(|_| *byte == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(*byte));
        rest = &tail[if code.is_some() { 3 } else { 0 }..];
    }
    plain
}

#[cfg(test)]
mod tests;
