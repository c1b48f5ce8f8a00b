// SPDX-License-Identifier: MIT OR Apache-2.0
//! Output that all commands share.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// Prints a JSON document on stdout.
pub fn json<T: Serialize>(value: &T) -> Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Prints a message on stderr, with the program's name before each line.
pub fn note(message: impl std::fmt::Display) {
    for line in message.to_string().lines() {
        eprintln!("toll-lab: {line}");
    }
}

/// Starts a progress line on stderr; hidden if stderr is not a terminal.
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
