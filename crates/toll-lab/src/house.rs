// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things lie: the lab's own files in the checkout, and what it makes in the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use toll_linux::calibrate::cache_folder;

use crate::error::LabError;

/// The folders that the lab works in.
#[derive(Debug, Clone)]
pub struct House {
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

impl House {
    /// The checkout round the current folder, else the one that this program was built in.
    ///
    /// # Errors
    /// [`LabError::Missing`] if neither is there, or the user has no home.
    pub fn find() -> Result<House> {
        let here = std::env::current_dir()?;
        let built = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here
            .ancestors()
            .chain(built.ancestors())
            .find(|folder| folder.join("kernel/BASE").is_file())
            .ok_or_else(|| {
                LabError::Missing(
                    "kernel/BASE is not in this folder or above it: call toll-lab in a checkout of tollfree".to_owned(),
                )
            })?;
        let cache = cache_folder().ok_or_else(|| {
            LabError::Missing(
                "neither XDG_CACHE_HOME nor HOME says where kernels may be kept".to_owned(),
            )
        })?;
        Ok(House {
            kernel: root.join("kernel"),
            guest: root.join("lab/guest"),
            scenarios: root.join("lab/scenarios"),
            disks: root.join("lab/disks"),
            plugins: root.join("plugins"),
            cache: cache.join("lab"),
        })
    }

    /// What `toll-lab outside` runs.
    pub fn outside(&self) -> PathBuf {
        self.scenarios.with_file_name("outside.toml")
    }

    /// The command line program beside this one; built, if cargo is there to do it.
    ///
    /// # Errors
    /// [`LabError::Missing`] if it is not built and cannot be.
    pub fn tollfree(&self) -> Result<PathBuf> {
        let own = std::env::current_exe()?;
        let beside = own.ancestors().skip(1).take(2);
        let places: Vec<PathBuf> = beside.map(|folder| folder.join("tollfree")).collect();
        let found = || places.iter().find(|path| path.is_file()).cloned();
        if let Some(path) = found() {
            return Ok(path);
        }
        let root = self.kernel.parent().unwrap_or(Path::new("."));
        let _ = Command::new("cargo")
            .args(["build", "--release", "--quiet", "-p", "tollfree"])
            .current_dir(root)
            .status();
        found().ok_or_else(|| {
            let why = "is not built: cargo build --release -p tollfree";
            LabError::Missing(format!("{}: {why}", places[0].display())).into()
        })
    }

    /// A plugin for whole systems.
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
