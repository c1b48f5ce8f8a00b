// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files, with the path in every error.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::FlockOperation;

/// The content of a file; `None` if there is none.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

/// Text of a file that must be there.
pub fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Writes a whole file or nothing, with the folders above it. An older file of that name may be a
/// hard link of another: it is replaced, never written into.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let attempt = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        io::Write::write_all(&mut file, content)?;
        file.persist(path)?;
        Ok(())
    };
    attempt().with_context(|| format!("{}: cannot be written", path.display()))
}

/// The last lines of a text, for an error.
pub fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Makes an empty folder, whatever was there.
pub fn empty_folder(path: &Path) -> Result<()> {
    let attempt = || -> io::Result<()> {
        if path.exists() {
            fs::remove_dir_all(path)?;
        }
        fs::create_dir_all(path)
    };
    attempt().with_context(|| path.display().to_string())
}

/// Every file below a folder, by its path from there.
pub fn below(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        let here = folder.join(&relative);
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

/// Makes `to` a copy of the folder `from` whose files are hard links.
pub fn link_tree(from: &Path, to: &Path) -> Result<()> {
    let attempt = |relative: &Path| -> io::Result<()> {
        let target = to.join(relative);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::hard_link(from.join(relative), &target)
    };
    for relative in below(from)? {
        attempt(&relative).with_context(|| to.join(&relative).display().to_string())?;
    }
    Ok(())
}

/// A path with something added to its last name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(suffix);
    PathBuf::from(text)
}

/// Waits until nobody else works under this lock; it ends with the value.
pub fn lock(path: &Path) -> Result<File> {
    let attempt = || -> io::Result<File> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::create(path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    };
    attempt().with_context(|| format!("{}: cannot be locked", path.display()))
}
