// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kernel's checkpatch on the queue.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::variant::Variant;
use crate::error::LabError;
use crate::workspace::Workspace;
use crate::{files, parallel};

/// Messages ignored for new files: they have no MAINTAINERS entry, and a Kconfig text may be short.
const IGNORED: &str = "FILE_PATH_CHANGES,CONFIG_DESCRIPTION";

/// Messages ignored for tracepoint headers, which all have this form.
const IGNORED_OF_TRACEPOINTS: &str = "OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT";

/// Directory of tracepoint headers.
const TRACEPOINTS: &str = "include/trace";

/// Directories with headers for user-space tests.
const STAND_INS: &str = "tools/testing/tollfree/include";

/// Number of files that one checkpatch reads: it starts in as much time as it takes to read one.
const AT_ONCE: usize = 8;

/// One call of checkpatch.
struct Check {
    command: Command,
    /// The patch that it reads; its messages name none.
    patch: Option<PathBuf>,
}

/// Returns checkpatch's messages on the new files and the patches, one per line.
///
/// # Errors
/// Errors of starting perl, and of reading a file.
pub fn complaints(workspace: &Workspace, source: &Path, variant: &Variant) -> Result<Vec<String>> {
    let (tracepoints, ours) = new_files(variant)?;
    let mut checks = of_files(source, &ours, &[]);
    checks.extend(of_files(
        source,
        &tracepoints,
        &["--ignore", IGNORED_OF_TRACEPOINTS],
    ));
    for patch in &variant.patches {
        let path = workspace.kernel.join("seams").join(patch.name());
        checks.push(of_patch(source, path)?);
    }
    Ok(parallel::map(parallel::cpus(), checks, |check, _| check.run())?.concat())
}

/// Finds the new files of code: tracepoint headers, and the others.
fn new_files(variant: &Variant) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let is_code = |path: &PathBuf| {
        let extension = path.extension().unwrap_or_default();
        // User-space replacements of kernel headers are not kernel code.
        ["c", "h"].iter().any(|it| extension == *it) && !path.starts_with(STAND_INS)
    };
    let (mut tracepoints, mut others) = (Vec::new(), Vec::new());
    for overlay in &variant.overlays {
        for path in files::below(overlay)?.into_iter().filter(is_code) {
            match path.starts_with(TRACEPOINTS) {
                true => tracepoints.push(overlay.join(path)),
                false => others.push(overlay.join(path)),
            }
        }
    }
    Ok((tracepoints, others))
}

fn of_files(source: &Path, paths: &[PathBuf], options: &[&str]) -> Vec<Check> {
    let check = |paths: &[PathBuf]| {
        let mut command = checkpatch(source);
        command.args(options).arg("--file").args(paths);
        Check {
            command,
            patch: None,
        }
    };
    paths.chunks(AT_ONCE).map(check).collect()
}

/// checkpatch treats a patch file that git tracks as a source file, unless it is read from stdin.
fn of_patch(source: &Path, path: PathBuf) -> Result<Check> {
    let file = File::open(&path).with_context(|| path.display().to_string())?;
    let mut command = checkpatch(source);
    command.args(["--no-signoff", "-"]).stdin(file);
    Ok(Check {
        command,
        patch: Some(path),
    })
}

impl Check {
    fn run(mut self) -> Result<Vec<String>> {
        let found = lines(&mut self.command)?;
        let Some(path) = self.patch else {
            return Ok(found);
        };
        let named = |line: String| format!("{}{}", path.display(), line.trim_start_matches('-'));
        Ok(found.into_iter().map(named).collect())
    }
}

fn checkpatch(source: &Path) -> Command {
    let mut command = Command::new("perl");
    // Where it may leave a file with what it has learned.
    command.current_dir(source);
    command.arg(source.join("scripts/checkpatch.pl")).args([
        "--strict",
        "--terse",
        "--no-summary",
        "--no-tree",
        "--ignore",
        IGNORED,
    ]);
    command
}

fn lines(command: &mut Command) -> Result<Vec<String>> {
    let output = command
        .output()
        .map_err(|error| LabError::Missing(format!("perl: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}
