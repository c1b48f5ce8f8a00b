// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the reports go.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toll_act::files;

use crate::output::{self, COLUMNS};
use crate::terminal;

/// Where the reports go.
#[derive(Debug)]
pub enum Sink {
    Stdout,
    /// The program owns stdout.
    Stderr,
    /// One report, written at once.
    File(PathBuf),
    /// A report for each interval, as it is made.
    Stream(PathBuf, File),
}

impl Sink {
    /// # Errors
    /// The file cannot be written.
    pub fn open(file: Option<&Path>, is_program: bool, intervals: bool) -> Result<Sink> {
        let Some(path) = file else {
            return Ok(match is_program {
                true => Sink::Stderr,
                false => Sink::Stdout,
            });
        };
        files::check_writable(path, true)?;
        if !intervals {
            return Ok(Sink::File(path.to_owned()));
        }
        let file = File::create(path);
        let file = file.with_context(|| format!("{}: cannot be written", path.display()))?;
        Ok(Sink::Stream(path.to_owned(), file))
    }

    /// Writes a report. A closed stderr is not an error.
    pub fn write(&mut self, text: &str) -> Result<()> {
        match self {
            Sink::Stdout => output::text(text),
            Sink::Stderr => {
                let _ = io::stderr().write_all(text.as_bytes());
                Ok(())
            }
            Sink::File(path) => files::write(path, text.as_bytes()),
            Sink::Stream(path, file) => file
                .write_all(text.as_bytes())
                .with_context(|| format!("{}: cannot be written", path.display())),
        }
    }

    /// The width of a line.
    pub fn columns(&self) -> usize {
        let found = match self {
            Sink::Stdout => terminal::columns(io::stdout()),
            Sink::Stderr => terminal::columns(io::stderr()),
            Sink::File(_) | Sink::Stream(..) => None,
        };
        found.unwrap_or(COLUMNS)
    }
}
