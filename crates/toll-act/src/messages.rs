// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages and progress lines on stderr.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle, WeakProgressBar};
use toll_model::names::plain;

/// The progress line that is shown.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Prints a message on stderr in one write, with `tollfree:` before each line, above the progress
/// line if there is one. It may contain the name of a process: what a terminal would act on is
/// replaced. Ignores write errors: the target may have closed the reading end.
pub fn note(message: impl std::fmt::Display) {
    let mut text = String::new();
    for line in message.to_string().lines() {
        text.push_str("tollfree: ");
        text.push_str(&plain(&line.replace('\t', " ")));
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

/// A progress line on stderr: shown at once on a terminal, hidden elsewhere.
pub fn progress(message: &str) -> ProgressBar {
    const LINE: &str = "{spinner} {elapsed} {wide_msg}";
    shown(ProgressBar::new_spinner, LINE, message)
}

/// A progress line that counts bytes.
pub type Bytes = ProgressBar;

/// A progress line with a rate, for work of a known size. Shown on a terminal only.
pub fn progress_bytes(message: &str, total: u64) -> Bytes {
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
    bar.enable_steady_tick(Duration::from_millis(100));
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
    bar
}
