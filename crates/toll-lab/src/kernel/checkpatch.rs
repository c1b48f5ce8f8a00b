// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the kernel's checkpatch on the queue.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::variant::Variant;
use crate::error::LabError;
use crate::files;
use crate::workspace::Workspace;

/// Messages ignored for new files: they have no MAINTAINERS entry, and a Kconfig text may be short.
const IGNORED: &str = "FILE_PATH_CHANGES,CONFIG_DESCRIPTION";

/// Messages ignored for tracepoint headers, which all have this form.
const IGNORED_OF_TRACEPOINTS: &str = "OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT";

/// Directory of tracepoint headers.
const TRACEPOINTS: &str = "include/trace";

/// Directories with headers for user-space tests.
const STAND_INS: &str = "tools/testing/tollfree/include";

/// Returns checkpatch's messages on the new files and the patches, one per line.
pub fn complaints(workspace: &Workspace, source: &Path, variant: &Variant) -> Result<Vec<String>> {
    let mut ours = Vec::new();
    let mut tracepoints = Vec::new();
    for overlay in &variant.overlays {
        let is_code = |path: &PathBuf| {
            let extension = path.extension().unwrap_or_default();
            // User-space replacements of kernel headers are not kernel code.
            let is_stand_in = path.starts_with(STAND_INS);
            ["c", "h"].iter().any(|it| extension == *it) && !is_stand_in
        };
        for path in files::below(overlay)?.into_iter().filter(is_code) {
            match path.starts_with(TRACEPOINTS) {
                true => tracepoints.push(overlay.join(path)),
                false => ours.push(overlay.join(path)),
            }
        }
    }
    let patches: Vec<PathBuf> = variant
        .patches
        .iter()
        .map(|patch| workspace.kernel.join("seams").join(patch.name()))
        .collect();
    let mut said = lines(checkpatch(source).arg("--file").args(&ours))?;
    if !tracepoints.is_empty() {
        let mut command = checkpatch(source);
        command.args(["--ignore", IGNORED_OF_TRACEPOINTS, "--file"]);
        said.extend(lines(command.args(&tracepoints))?);
    }
    for path in &patches {
        // checkpatch treats a patch file that git tracks as a source file, unless it is read from
        // stdin.
        let patch = File::open(path).with_context(|| path.display().to_string())?;
        let found = lines(checkpatch(source).args(["--no-signoff", "-"]).stdin(patch))?;
        let name = |line: String| format!("{}{}", path.display(), line.trim_start_matches('-'));
        said.extend(found.into_iter().map(name));
    }
    Ok(said)
}

fn checkpatch(source: &Path) -> Command {
    let mut command = Command::new("perl");
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
