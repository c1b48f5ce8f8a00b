// SPDX-License-Identifier: MIT OR Apache-2.0
//! The base source: that of Debian's kernel source package, or the same file in the cache, where the
//! set-up unpacks it if the machine's package sources lack the package.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::error::LabError;
use crate::files;
use crate::output;
use crate::workspace::Workspace;

const PACKAGE: &str = "linux-source-6.12";
const INSTALLED: &str = "/usr/src/linux-source-6.12.tar.xz";
const SUFFIX: &str = ".tar.xz";
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
    /// Returns the source of the installed package or of the cache, and unpacks it if necessary.
    ///
    /// # Errors
    /// [`LabError::Missing`] if there is none or the disk is full.
    pub fn unpacked(workspace: &Workspace) -> Result<Source> {
        let sources = workspace.cache.join("source");
        let archive = match installed() {
            Some(archive) => archive,
            None => cached(&sources)?.ok_or_else(missing)?,
        };
        let known = bases(&files::read_text(&workspace.kernel.join("BASE"))?);
        if !known.contains(&archive.version) {
            output::note(format_args!(
                "warning: {PACKAGE} is {}; kernel/BASE names {}: patches may not apply",
                archive.version,
                known.join(", ")
            ));
        }
        let directory = sources.join(&archive.version);
        let _lock = files::lock(&workspace.cache.join("source.lock"))?;
        if !directory.is_dir() {
            check_disk(&workspace.cache)?;
            unpack(&archive.path, &directory)?;
        }
        Ok(Source {
            version: archive.version,
            directory,
        })
    }
}

/// A packed source.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Archive {
    version: String,
    path: PathBuf,
}

/// Reads the versions that kernel/BASE names.
fn bases(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn missing() -> LabError {
    LabError::Missing(format!(
        "Debian's package {PACKAGE} is neither installed nor in the cache: setup/setup.sh lab gets it"
    ))
}

/// The installed package.
fn installed() -> Option<Archive> {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f", "${db:Status-Status} ${Version}", PACKAGE])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (status, version) = text.split_once(' ')?;
    let path = PathBuf::from(INSTALLED);
    (status == "installed" && path.is_file()).then(|| Archive {
        version: version.to_owned(),
        path,
    })
}

/// The file `VERSION.tar.xz` of a directory; of several, the last by name.
fn cached(directory: &Path) -> Result<Option<Archive>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries.with_context(|| directory.display().to_string())?,
    };
    let mut archives = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if let Some(version) = name.and_then(|name| name.strip_suffix(SUFFIX)) {
            let version = version.to_owned();
            archives.push(Archive { version, path });
        }
    }
    Ok(archives.into_iter().max())
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
fn unpack(archive: &Path, directory: &Path) -> Result<()> {
    let _bar = output::progress("unpacking the kernel's source");
    let part = files::with_suffix(directory, ".part");
    files::empty_directory(&part)?;
    let output = Command::new("tar")
        .args(["--extract", "--xz", "--strip-components=1", "--file"])
        .arg(archive)
        .arg("--directory")
        .arg(&part)
        .output()
        .context("tar")?;
    if !output.status.success() {
        let _ = fs::remove_dir_all(&part);
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(LabError::Missing(format!(
            "{}: cannot be unpacked: {}",
            archive.display(),
            said.trim()
        ))
        .into());
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
    fn the_cache_has_sources_by_version() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(cached(&directory.path().join("none")).unwrap(), None);
        fs::create_dir(directory.path().join("6.12.118-1")).unwrap();
        assert_eq!(cached(directory.path()).unwrap(), None);
        for name in ["6.12.107-1.tar.xz", "6.12.117-1~deb12u1.tar.xz", "notes"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let found = cached(directory.path()).unwrap().unwrap();
        assert_eq!(found.version, "6.12.117-1~deb12u1");
        assert!(found.path.ends_with("6.12.117-1~deb12u1.tar.xz"));
    }

    #[test]
    fn an_archive_unpacks_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let (archive, directory) = (place.join("1.tar.xz"), place.join("1"));
        fs::write(&archive, "torn").unwrap();
        let error = unpack(&archive, &directory).unwrap_err().to_string();
        assert!(error.contains("1.tar.xz: cannot be unpacked"), "{error}");
        assert_eq!(fs::read_dir(place).unwrap().count(), 1);

        fs::create_dir(place.join("linux")).unwrap();
        fs::write(place.join("linux/Makefile"), "all:").unwrap();
        let packed = Command::new("tar")
            .args(["--create", "--xz", "--file"])
            .arg(&archive)
            .arg("--directory")
            .args([place, Path::new("linux")])
            .status();
        assert!(packed.unwrap().success());
        unpack(&archive, &directory).unwrap();
        assert!(directory.join("Makefile").is_file());
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
