// SPDX-License-Identifier: MIT OR Apache-2.0
//! File helpers that name the path in every error.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::FlockOperation;

/// Reads a file; `None` if it does not exist.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Reads a text file; it is an error if it does not exist.
pub fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Removes a file, if it exists.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Writes a file atomically and creates its parent directories. An existing file may be a hard
/// link, so it is replaced, never written in place.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let attempt = || -> io::Result<()> {
        let directory = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        io::Write::write_all(&mut file, content)?;
        file.persist(path)?;
        Ok(())
    };
    attempt().with_context(|| format!("{}: cannot be written", path.display()))
}

/// Returns the last lines of a text, for an error message.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Creates an empty directory and removes previous content.
pub fn empty_directory(path: &Path) -> Result<()> {
    let attempt = || -> io::Result<()> {
        if path.exists() {
            fs::remove_dir_all(path)?;
        }
        fs::create_dir_all(path)
    };
    attempt().with_context(|| path.display().to_string())
}

/// Lists every file below a directory, with paths relative to it.
pub fn below(directory: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        let here = directory.join(&relative);
        let entries = fs::read_dir(&here).with_context(|| here.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            let path = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

/// Copies directory `from` to `to` with hard links instead of file data.
pub fn link_tree(from: &Path, to: &Path) -> Result<()> {
    let attempt = |relative: &Path| -> io::Result<()> {
        let target = to.join(relative);
        if let Some(directory) = target.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::hard_link(from.join(relative), &target)
    };
    for relative in below(from)? {
        attempt(&relative).with_context(|| to.join(&relative).display().to_string())?;
    }
    Ok(())
}

/// Appends a suffix to the last component of a path.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(suffix);
    PathBuf::from(text)
}

/// Acquires a file lock; it is released when the value is dropped.
pub fn lock(path: &Path) -> Result<File> {
    let attempt = || -> io::Result<File> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        let file = File::create(path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    };
    attempt().with_context(|| format!("{}: cannot be locked", path.display()))
}
