// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of the lab: its files in the checkout, and its directory in the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use toll_linux::calibrate::cache_directory;

use crate::error::LabError;

/// Directories that the lab works in.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// `kernel/` of the checkout.
    pub kernel: PathBuf,
    /// `lab/guest/` of the checkout: programs that run in guests.
    pub guest: PathBuf,
    /// `lab/scenarios/` of the checkout.
    pub scenarios: PathBuf,
    /// `lab/disks/` of the checkout: scripts that fill disks.
    pub disks: PathBuf,
    /// `plugins/` of the checkout.
    pub plugins: PathBuf,
    /// `tollfree/lab` in the user's cache.
    pub cache: PathBuf,
}

impl Workspace {
    /// Finds the checkout that contains the current directory, else the one that this program was
    /// built in.
    ///
    /// # Errors
    /// [`LabError::Missing`] if neither exists, or the user has no home directory.
    pub fn find() -> Result<Workspace> {
        let here = std::env::current_dir()?;
        let built = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here
            .ancestors()
            .chain(built.ancestors())
            .find(|directory| directory.join("kernel/BASE").is_file())
            .ok_or_else(|| {
                LabError::Missing(
                    "kernel/BASE not found in this directory or above: run toll-lab in a checkout of tollfree".to_owned(),
                )
            })?;
        let cache = cache_directory().ok_or_else(|| {
            LabError::Missing(
                "neither XDG_CACHE_HOME nor HOME is set: no place for the kernel cache".to_owned(),
            )
        })?;
        Ok(Workspace {
            kernel: root.join("kernel"),
            guest: root.join("lab/guest"),
            scenarios: root.join("lab/scenarios"),
            disks: root.join("lab/disks"),
            plugins: root.join("plugins"),
            cache: cache.join("lab"),
        })
    }

    /// The checkout.
    pub fn root(&self) -> &Path {
        self.kernel.parent().unwrap_or(Path::new("."))
    }

    /// Path of the `toll-lab adversary` configuration.
    pub fn adversary(&self) -> PathBuf {
        self.scenarios.with_file_name("adversary.toml")
    }

    /// Path of the `toll-lab outside` configuration.
    pub fn outside(&self) -> PathBuf {
        self.scenarios.with_file_name("outside.toml")
    }

    /// Returns the `tollfree` program beside this one; builds it if cargo is available.
    ///
    /// # Errors
    /// [`LabError::Missing`] if it is not built and cannot be built.
    pub fn tollfree(&self) -> Result<PathBuf> {
        let own = std::env::current_exe()?;
        let beside = own.ancestors().skip(1).take(2);
        let places: Vec<PathBuf> = beside.map(|directory| directory.join("tollfree")).collect();
        let found = || places.iter().find(|path| path.is_file()).cloned();
        if let Some(path) = found() {
            return Ok(path);
        }
        let _ = Command::new("cargo")
            .args(["build", "--release", "--quiet", "-p", "tollfree"])
            .current_dir(self.root())
            .status();
        found().ok_or_else(|| {
            let why = "is not built: cargo build --release -p tollfree";
            LabError::Missing(format!("{}: {why}", places[0].display())).into()
        })
    }

    /// Returns the path of a system-mode plugin.
    ///
    /// # Errors
    /// [`LabError::Missing`] if it is not built.
    pub fn plugin(&self, name: &str) -> Result<PathBuf> {
        let library = self.plugins.join("user/build").join(name);
        match library.is_file() {
            true => Ok(library),
            false => Err(LabError::Missing(format!(
                "{}: is not built: make -C plugins",
                library.display()
            ))
            .into()),
        }
    }
}
