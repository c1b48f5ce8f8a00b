// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every command prints in the same way: JSON, progress, whole files.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Prints one JSON document on stdout.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// A progress line on stderr: shown from the first moment on a terminal, silent elsewhere.
pub fn progress(message: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}").expect("valid"));
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}

/// Writes a whole file or nothing: a temporary file beside it, synced, then renamed.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let directory = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let attempt = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    attempt().with_context(|| format!("{}: cannot be written", path.display()))
}
