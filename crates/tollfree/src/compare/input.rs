// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every run of the target reads on its stdin: the same bytes.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use tempfile::NamedTempFile;

use crate::error::UserError;
use crate::{output, signals};

/// A pipe that says nothing for this long at the start is taken as empty: tollfree
/// may have been started with a pipe that nobody will ever write to or close.
const PATIENCE: Duration = Duration::from_secs(5);

/// Our own stdin, kept so that each run can read it from the start.
#[derive(Debug)]
pub struct Input {
    copy: Option<NamedTempFile>,
}

impl Input {
    /// Reads stdin to its end, unless it is a terminal: then every run reads nothing.
    pub fn read() -> Result<Input> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Ok(Input { copy: None });
        }
        let mut copy =
            NamedTempFile::with_prefix("tollfree-stdin-").context("stdin cannot be kept")?;
        copy_all(&mut stdin.lock(), copy.as_file_mut())?;
        Ok(Input { copy: Some(copy) })
    }

    /// The file that each run gets as its stdin.
    pub fn path(&self) -> PathBuf {
        self.copy
            .as_ref()
            .map_or(Path::new("/dev/null"), NamedTempFile::path)
            .to_owned()
    }
}

fn copy_all(from: &mut (impl Read + AsFd), to: &mut File) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut waited = Some(PATIENCE);
    loop {
        if signals::interrupted().is_some() {
            return Err(UserError::Interrupted.into());
        }
        if !readable(from, waited)? {
            let seconds = PATIENCE.as_secs();
            output::note(format_args!(
                "stdin is open and silent for {seconds} s; the program gets an empty one"
            ));
            return Ok(());
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => to.write_all(&buffer[..n]).context("stdin cannot be kept")?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A closed or write-only stdin is one that nothing can be read from.
            Err(_) => return Ok(()),
        }
        waited = None;
    }
}

/// Whether something (or the end) can be read within `patience`; `None`: waits for it.
fn readable(from: &impl AsFd, patience: Option<Duration>) -> Result<bool> {
    let mut fds = [PollFd::new(from, PollFlags::IN)];
    let limit = patience.and_then(|p| rustix::time::Timespec::try_from(p).ok());
    match poll(&mut fds, limit.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error).context("stdin"),
    }
}
