// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every command prints in the same way.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Prints one JSON document on stdout.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Tells the user something on stderr, with our name before each line.
pub fn note(message: impl std::fmt::Display) {
    for line in message.to_string().lines() {
        eprintln!("toll-lab: {line}");
    }
}

/// A progress line on stderr: silent where that is no terminal.
pub fn progress(message: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}").expect("valid"));
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
