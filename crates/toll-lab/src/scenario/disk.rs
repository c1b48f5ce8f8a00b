// SPDX-License-Identifier: MIT OR Apache-2.0
//! Disks made for a scenario: an ext4 file system, either with files for which only the size
//! matters or filled by a script.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::error::LabError;
use crate::workspace::Workspace;
use crate::{files, output};

/// A `[[disk]]` table of a scenario: /dev/vda for the first, and so on.
#[derive(Debug, Clone, Default, Deserialize, Hash)]
#[serde(deny_unknown_fields)]
pub struct DiskSpec {
    /// Size of the file system, MiB; 0: an empty device of `empty_mib` without a file system.
    #[serde(default)]
    pub ext4_mib: u64,
    #[serde(default)]
    pub empty_mib: u64,
    /// Files of pseudo-random bytes.
    #[serde(default, rename = "file")]
    pub files: Vec<FileSpec>,
    /// Script of lab/disks that fills the directory given as its first argument.
    pub script: Option<String>,
    /// Further arguments of the script.
    #[serde(default)]
    pub arguments: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, Hash)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    pub name: String,
    pub mib: u64,
}

impl DiskSpec {
    pub(super) fn problem(&self) -> Option<String> {
        let held: u64 = self.files.iter().map(|file| file.mib).sum();
        if (self.ext4_mib == 0) == (self.empty_mib == 0) {
            return Some("disk: has either ext4_mib or empty_mib".to_owned());
        }
        if self.empty_mib > 0 && (held > 0 || self.script.is_some()) {
            return Some("disk: files need a file system (ext4_mib)".to_owned());
        }
        // Space for ext4's own structures.
        if held + held / 16 > self.ext4_mib && held > 0 {
            let size = self.ext4_mib;
            return Some(format!(
                "disk: {held} MiB of files do not fit into {size} MiB"
            ));
        }
        let is_bad = |file: &&FileSpec| file.name.is_empty() || file.name.contains('/');
        let bad = self.files.iter().find(is_bad)?;
        Some(format!("disk: {:?}: invalid file name", bad.name))
    }

    /// Returns the disk's image, and creates it if it is not cached.
    ///
    /// # Errors
    /// [`LabError::Missing`] without mkfs.ext4, [`LabError::Build`] if it or a script fails.
    pub fn made(&self, workspace: &Workspace) -> Result<PathBuf> {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        let script = self.script.as_ref().map(|name| workspace.disks.join(name));
        if let Some(script) = &script {
            files::read_text(script)?.hash(&mut hasher);
        }
        let directory = workspace.cache.join("disks");
        let _lock = files::lock(&directory.join("lock"))?;
        let image = directory.join(format!("{:016x}.img", hasher.finish()));
        if !image.is_file() {
            self.make(workspace, script.as_deref(), &image)?;
        }
        Ok(image)
    }

    fn make(&self, workspace: &Workspace, script: Option<&Path>, image: &Path) -> Result<()> {
        let _bar = output::progress("making a disk");
        let part = files::with_suffix(image, ".part");
        let attempt = || -> Result<()> {
            let size = self.ext4_mib.max(self.empty_mib) << 20;
            File::create(&part)?.set_len(size)?;
            if self.ext4_mib > 0 {
                self.fill(workspace, script, &part)?;
            }
            fs::rename(&part, image)?;
            Ok(())
        };
        let result = attempt();
        let _ = fs::remove_file(&part);
        result.with_context(|| image.display().to_string())
    }

    /// Creates the file system from a temporary directory.
    fn fill(&self, workspace: &Workspace, script: Option<&Path>, image: &Path) -> Result<()> {
        let content = files::with_suffix(image, ".files");
        let result = self.gather(workspace, script, &content).and_then(|()| {
            let mkfs = PathBuf::from("/sbin/mkfs.ext4");
            // No journal: the disk is discarded after each run.
            let mut command = Command::new(&mkfs);
            command
                .args(["-q", "-F", "-m", "0", "-O", "^has_journal", "-d"])
                .arg(&content)
                .arg(image);
            run(&mut command, &mkfs)
        });
        let _ = fs::remove_dir_all(&content);
        result
    }

    /// Writes the disk's content into a directory.
    fn gather(&self, workspace: &Workspace, script: Option<&Path>, content: &Path) -> Result<()> {
        files::empty_directory(content)?;
        for file in &self.files {
            random_file(&content.join(&file.name), file.mib)?;
        }
        let Some(script) = script else {
            return Ok(());
        };
        let mut command = Command::new("sh");
        command.arg(script).arg(content).args(&self.arguments);
        run(command.env("TOLL_LAB_CACHE", &workspace.cache), script)
    }
}

fn run(command: &mut Command, what: &Path) -> Result<()> {
    let output = command
        .output()
        .map_err(|error| LabError::Missing(format!("{}: {error}", what.display())))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            let why = files::last_lines(&said, 15);
            Err(LabError::Build(format!("{}: {why}", what.display())).into())
        }
    }
}

/// Generates incompressible bytes that are the same on all machines (xorshift64*, Vigna 2016).
fn random_file(path: &Path, mib: u64) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ mib;
    for _ in 0..(mib << 20) / 8 {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let word = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
        file.write_all(&word.to_le_bytes())?;
    }
    file.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(text: &str) -> DiskSpec {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_disk_that_cannot_be_is_named() {
        assert_eq!(disk("ext4_mib = 64").problem(), None);
        assert_eq!(disk("empty_mib = 64").problem(), None);
        let says = |text: &str| disk(text).problem().unwrap_or_default();
        assert!(says("").contains("either"));
        assert!(says("empty_mib = 1\nscript = 'x.sh'").contains("file system"));
        assert!(says("ext4_mib = 64\nfile = [{ name = 'a', mib = 63 }]").contains("63 MiB"));
        assert!(says("ext4_mib = 64\nfile = [{ name = 'a/b', mib = 1 }]").contains("a/b"));
    }

    #[test]
    fn files_are_the_same_everywhere() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        random_file(&path, 1).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 1 << 20);
        assert_ne!(bytes[..8], bytes[8..16]);
        random_file(&path, 1).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}
