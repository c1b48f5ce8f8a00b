// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stdin of the target: every run reads the same bytes.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use tempfile::NamedTempFile;
use toll_act::error::UserError;
use toll_act::{messages, signals};

/// A pipe without data for this long at the start counts as empty: tollfree may have been started
/// with a pipe that is never written to or closed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A copy of our stdin, so that each run can read it from the start; by default nothing.
#[derive(Debug, Default)]
pub struct Input {
    copy: Option<NamedTempFile>,
}

impl Input {
    /// Reads stdin to its end. If it is a terminal, every run reads nothing.
    pub fn read() -> Result<Input> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Ok(Input::default());
        }
        let mut copy =
            NamedTempFile::with_prefix("tollfree-stdin-").context("cannot store stdin")?;
        copy_all(&mut stdin.lock(), copy.as_file_mut())?;
        Ok(Input { copy: Some(copy) })
    }

    /// The file that each run reads as its stdin.
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
            messages::note(format_args!(
                "no data on stdin for {seconds} s; the program's stdin will be empty"
            ));
            return Ok(());
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => to.write_all(&buffer[..n]).context("cannot store stdin")?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Nothing can be read from a closed or write-only stdin.
            Err(_) => return Ok(()),
        }
        waited = None;
    }
}

/// Whether data or the end is available within `patience`; `None`: waits without limit.
fn readable(from: &impl AsFd, patience: Option<Duration>) -> Result<bool> {
    let mut fds = [PollFd::new(from, PollFlags::IN)];
    let limit = patience.and_then(|p| rustix::time::Timespec::try_from(p).ok());
    match poll(&mut fds, limit.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(true),
        Err(error) => Err(error).context("stdin"),
    }
}
