// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output that all commands share: JSON, progress lines, atomic file writes.

use std::fs::Permissions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle, WeakProgressBar};
use serde::Serialize;

use crate::error::UserError;

/// Prints one JSON document on stdout.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Prints text on stdout. Unlike `print!`, returns a write error (a full disk) instead of
/// panicking.
pub fn text(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("stdout: cannot be written")
}

/// Writes one JSON document to a file or a descriptor (`/dev/fd/3`). Without one, writes to stderr,
/// because stdout belongs to the target.
pub fn json_for<T: Serialize>(file: Option<&Path>, value: &T) -> Result<()> {
    let Some(file) = file else {
        return json_on_stderr(value);
    };
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    write_file(file, &text)
}

/// Prints one JSON document on stderr. A closed stderr is not an error.
fn json_on_stderr<T: Serialize>(value: &T) -> Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    let _ = io::stderr().write_all(&text);
    Ok(())
}

/// The progress line that is shown.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Prints a message on stderr in one write, with `tollfree:` before each line, above the progress
/// line if there is one. Ignores write errors: the target may have closed the reading end.
pub fn note(message: impl std::fmt::Display) {
    let mut text = String::new();
    for line in message.to_string().lines() {
        text.push_str("tollfree: ");
        text.push_str(line);
        text.push('\n');
    }
    let write = || {
        let _ = io::stderr().write_all(text.as_bytes());
    };
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match shown.as_ref().and_then(WeakProgressBar::upgrade) {
        Some(bar) if !bar.is_finished() => bar.suspend(write),
        _ => write(),
    }
}

/// Like [`note`], but prints each message at most once per process.
pub fn note_once(message: impl std::fmt::Display) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let message = message.to_string();
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if !told.contains(&message) {
        note(&message);
        told.push(message);
    }
}

/// Checks that a result can be written to `path`, before the work for it is done.
///
/// # Errors
/// [`UserError::Usage`] if the file exists and `force` is not set; otherwise the reason why its
/// directory cannot be written.
pub fn check_writable(path: &Path, force: bool) -> Result<()> {
    if path.is_dir() {
        return Err(UserError::Usage(format!("{}: is a directory", path.display())).into());
    }
    if path.is_file() && !force {
        let message = format!("{}: exists already (--force overwrites it)", path.display());
        return Err(UserError::Usage(message).into());
    }
    if is_special(path) {
        return Ok(());
    }
    tempfile::NamedTempFile::new_in(directory(path))
        .map(drop)
        .with_context(|| format!("{}: cannot be written", path.display()))
}

/// A progress line on stderr: shown at once on a terminal, hidden elsewhere.
pub fn progress(message: &str) -> ProgressBar {
    const LINE: &str = "{spinner} {elapsed} {wide_msg}";
    shown(ProgressBar::new_spinner, LINE, message)
}

/// A progress line with a rate, for work of a known size. Shown on a terminal only.
pub fn progress_bytes(message: &str, total: u64) -> ProgressBar {
    const LINE: &str = "{msg} {bytes} of {total_bytes} {wide_bar} {bytes_per_sec} {eta}";
    shown(|| ProgressBar::new(total), LINE, message)
}

fn shown(new: impl FnOnce() -> ProgressBar, line: &str, message: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = new();
    bar.set_style(ProgressStyle::with_template(line).expect("valid"));
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
    bar
}

/// A table without borders: names in the first column, numbers in the others.
pub fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Writes a file atomically: to a temporary file in the same directory, synced, then renamed.
pub fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    let attempt = || -> io::Result<()> {
        if is_special(path) {
            return std::fs::write(path, content);
        }
        let mode = Permissions::from_mode(0o666);
        let mut file = tempfile::Builder::new()
            .permissions(mode)
            .tempfile_in(directory(path))?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    attempt().with_context(|| format!("{}: cannot be written", path.display()))
}

/// Whether the path is a pipe, a device (`/dev/stdout`) or an open descriptor (`/dev/fd/3`), which
/// is written in place instead of replaced.
fn is_special(path: &Path) -> bool {
    let directories = ["/dev/fd", "/proc/self/fd"];
    if path.parent().is_some_and(|parent| {
        directories
            .iter()
            .any(|directory| parent == Path::new(directory))
    }) {
        return true;
    }
    std::fs::metadata(path).is_ok_and(|meta| !meta.is_file())
}

fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
