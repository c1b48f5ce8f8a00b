// SPDX-License-Identifier: MIT OR Apache-2.0
//! The base source: Debian's kernel source package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::error::LabError;
use crate::files;
use crate::output;
use crate::workspace::Workspace;

const PACKAGE: &str = "linux-source-6.12";
const TARBALL: &str = "/usr/src/linux-source-6.12.tar.xz";
/// Disk space for an unpacked tree and one build, in bytes.
const NEEDED: u64 = 4 << 30;

/// Debian's source, unpacked and read-only.
#[derive(Debug)]
pub struct Source {
    /// Version of the package, `6.12.117-1~deb12u1`.
    pub version: String,
    pub directory: PathBuf,
}

impl Source {
    /// Returns the installed package's source and unpacks it if necessary.
    ///
    /// # Errors
    /// [`LabError::Missing`] if the package is not installed or the disk is full.
    pub fn unpacked(workspace: &Workspace) -> Result<Source> {
        let version = installed()?;
        let known = bases(&files::read_text(&workspace.kernel.join("BASE"))?);
        if !known.contains(&version) {
            output::note(format_args!(
                "warning: {PACKAGE} is {version}; kernel/BASE names {}: patches may not apply",
                known.join(", ")
            ));
        }
        let directory = workspace.cache.join("source").join(&version);
        let _lock = files::lock(&workspace.cache.join("source.lock"))?;
        if !directory.is_dir() {
            check_disk(&workspace.cache)?;
            unpack(&directory)?;
        }
        Ok(Source { version, directory })
    }
}

/// Reads the versions that kernel/BASE names.
fn bases(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn installed() -> Result<String> {
    let missing = || {
        LabError::Missing(format!(
            "Debian's package {PACKAGE} is not installed: setup/setup.sh lab installs it"
        ))
    };
    let output = Command::new("dpkg-query")
        .args(["-W", "-f", "${db:Status-Status} ${Version}", PACKAGE])
        .output()
        .map_err(|_| missing())?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.split_once(' ') {
        Some(("installed", version)) if Path::new(TARBALL).is_file() => Ok(version.to_owned()),
        _ => Err(missing().into()),
    }
}

fn check_disk(directory: &Path) -> Result<()> {
    let stat = rustix::fs::statvfs(directory).with_context(|| directory.display().to_string())?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= NEEDED {
        return Ok(());
    }
    Err(LabError::Missing(format!(
        "{}: {} MiB of disk are free; a kernel's source and build need {} MiB",
        directory.display(),
        free >> 20,
        NEEDED >> 20
    ))
    .into())
}

/// Unpacks beside `directory` and renames, so that an interrupted unpack is never used.
fn unpack(directory: &Path) -> Result<()> {
    let _bar = output::progress("unpacking the kernel's source");
    let part = files::with_suffix(directory, ".part");
    files::empty_directory(&part)?;
    let output = Command::new("tar")
        .args([
            "--extract",
            "--xz",
            "--strip-components=1",
            "--file",
            TARBALL,
            "--directory",
        ])
        .arg(&part)
        .output()
        .context("tar")?;
    if !output.status.success() {
        let _ = fs::remove_dir_all(&part);
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(
            LabError::Missing(format!("{TARBALL}: cannot be unpacked: {}", said.trim())).into(),
        );
    }
    fs::rename(&part, directory).with_context(|| directory.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_names_versions_one_a_line() {
        let text = "# SPDX\n6.12.117-1~deb12u1\n\n 6.12.110-1 \n";
        assert_eq!(bases(text), ["6.12.117-1~deb12u1", "6.12.110-1"]);
    }

    #[test]
    fn too_little_disk_is_named() {
        // /proc has no blocks.
        let error = check_disk(Path::new("/proc")).unwrap_err().to_string();
        assert!(
            error.starts_with("/proc: 0 MiB of disk are free"),
            "{error}"
        );
    }
}
