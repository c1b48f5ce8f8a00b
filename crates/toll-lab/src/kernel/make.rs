// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kernel's make with a separate output directory.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::modules;
use super::tree::Tree;
use super::variant::{Variant, hash};
use crate::error::LabError;
use crate::{child, files, output, parallel};

/// The directory of make's output in a tree.
pub const BUILD: &str = "build";

/// Arguments of every call: kernels must not depend on the build machine or time.
const SETTINGS: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "1970-01-01"),
    ("KBUILD_BUILD_USER", "toll"),
    ("KBUILD_BUILD_HOST", "lab"),
    ("KBUILD_BUILD_VERSION", "1"),
];

/// make for one variant.
#[derive(Debug)]
pub struct Make {
    tree: PathBuf,
    pub build: PathBuf,
    variant: String,
    release: String,
    ccache: PathBuf,
}

impl Make {
    pub fn new(tree: &Path, variant: &Variant, ccache: &Path) -> Result<Make> {
        let build = tree.join(BUILD);
        fs::create_dir_all(&build).with_context(|| build.display().to_string())?;
        Ok(Make {
            tree: tree.to_owned(),
            build,
            variant: variant.name.clone(),
            release: variant.release.clone(),
            ccache: ccache.to_owned(),
        })
    }

    /// Returns the inputs of a kernel build: if they are unchanged, the build is skipped.
    pub fn stamp(&self, source: &str, variant: &Variant, tree: &Tree) -> Result<String> {
        let mut stamp = format!("source {source}\ncompiler {}\n", compiler()?);
        for fragment in &variant.fragments {
            stamp += &format!("fragment {:016x}\n", hash(&files::read(fragment)?));
        }
        for (path, content) in &tree.changed {
            stamp += &format!("{} {:016x}\n", path.display(), hash(content));
        }
        Ok(stamp)
    }

    pub fn is_done(&self, stamp: &str) -> Result<bool> {
        let done = files::read(&self.stamp_path())?;
        Ok(done.as_deref() == Some(stamp.as_bytes()) && self.image_path().is_file())
    }

    /// Builds the bootable image, and the modules if any are configured.
    pub fn image(&self, stamp: &str) -> Result<()> {
        let targets: &[&str] = match self.has_modules()? {
            true => &["bzImage", "modules"],
            false => &["bzImage"],
        };
        self.run(targets, "building")?;
        files::write(&self.stamp_path(), stamp.as_bytes())
    }

    fn has_modules(&self) -> Result<bool> {
        let config = files::read_text(&self.config_path())?;
        Ok(config.lines().any(|line| line == "CONFIG_MODULES=y"))
    }

    /// Returns the modules that were built, each after its dependencies.
    ///
    /// # Errors
    /// If a file that make writes beside each module is missing.
    pub fn modules(&self) -> Result<Vec<PathBuf>> {
        if !self.has_modules()? {
            return Ok(Vec::new());
        }
        let order = files::read_text(&self.build.join("modules.order"))?;
        modules::loading_order(&self.build, &order)
    }

    /// Returns the warnings of the compiler with W=1, and of sparse if it is installed, for some
    /// directories.
    pub fn warnings(&self, directories: &[&str]) -> Result<Vec<String>> {
        let mut targets = vec!["W=1"];
        if is_there("sparse") {
            // sparse does not know that a guard unlocks at the end of its scope.
            targets.extend(["C=2", "CF=-Wno-context"]);
        }
        targets.extend(directories);
        // A different command line rebuilds the objects, and so does the next normal build.
        self.run(&targets, "linting")?;
        let log = files::read_text(&self.build.join("make.log"))?;
        let is_word = |line: &&str| line.contains("warning:") || line.contains("error:");
        Ok(log.lines().filter(is_word).map(str::to_owned).collect())
    }

    fn stamp_path(&self) -> PathBuf {
        self.build.join("built.stamp")
    }

    pub fn config_path(&self) -> PathBuf {
        self.build.join(".config")
    }

    pub fn image_path(&self) -> PathBuf {
        self.build.join("arch/x86/boot/bzImage")
    }

    /// Returns the release, as printed by `uname -r`.
    pub fn release(&self) -> Result<String> {
        let text = files::read_text(&self.build.join("include/config/kernel.release"))?;
        Ok(text.trim().to_owned())
    }

    /// Calls make with its output in a log file.
    ///
    /// # Errors
    /// [`LabError::Build`] with the end of the log if make fails.
    pub fn run(&self, targets: &[&str], doing: &str) -> Result<()> {
        let log = self.build.join("make.log");
        let mut file = File::create(&log).with_context(|| log.display().to_string())?;
        let mut command = self.command();
        command
            .args(targets)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file.try_clone()?);
        let mut child = command
            .spawn()
            .map_err(|error| LabError::Missing(format!("make: {error}")))?;
        let bar = output::progress(&format!("{}: {doing}", self.variant));
        let mut steps = 0_u32;
        for line in BufReader::new(child.stdout.take().expect("piped")).split(b'\n') {
            let mut line = line?;
            steps += 1;
            bar.set_message(format!("{}: {doing}, {steps} steps", self.variant));
            line.push(b'\n');
            file.write_all(&line)
                .with_context(|| log.display().to_string())?;
        }
        let status = child.wait()?;
        bar.finish_and_clear();
        if status.success() {
            return Ok(());
        }
        Err(LabError::Build(format!(
            "{}: make {} failed ({status}); the end of {}:\n{}",
            self.variant,
            targets.last().copied().unwrap_or_default(),
            log.display(),
            files::last_lines(
                &String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()),
                20
            )
        ))
        .into())
    }

    fn command(&self) -> Command {
        let mut command = Command::new("make");
        let jobs = parallel::cpus();
        command
            .arg("-C")
            .arg(&self.tree)
            .arg("O=build")
            .arg(format!("-j{jobs}"))
            .arg(format!("LOCALVERSION=-{}", self.release))
            .envs(SETTINGS)
            .env("CCACHE_DIR", &self.ccache)
            // Leaves the directory out of ccache's hash, so that the same file in two variants'
            // trees hits the cache.
            .env("CCACHE_NOHASHDIR", "1")
            // Takes the names of headers from the compiler's list of dependencies instead of
            // preprocessing each file first: a quarter less work where the cache has no entry. Two
            // variants share an entry only if all headers are equal, the configuration's included.
            .env("CCACHE_DEPEND", "1")
            .env_remove("MAKEFLAGS");
        if is_there("ccache") {
            command.arg("CC=ccache gcc");
        }
        child::end_with_us(&mut command, libc::SIGTERM);
        command
    }
}

fn is_there(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn compiler() -> Result<String> {
    let output = Command::new("gcc").arg("--version").output();
    let output = output.map_err(|error| LabError::Missing(format!("gcc: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
