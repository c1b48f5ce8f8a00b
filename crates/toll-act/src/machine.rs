// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings of the machine that a variant needs: changed for a run, then restored.
//!
//! A process of its own restores the setting, so that a tollfree that is killed leaves nothing
//! behind.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::pipe::{PipeFlags, pipe_with};
use toll_linux::sys::selected;

use crate::error::UserError;

/// A value of a file in /sys or /proc/sys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineSetting {
    pub file: PathBuf,
    pub value: String,
}

/// The setting has its value until this is dropped, or until this process ends in any way.
#[derive(Debug)]
pub struct Held {
    /// The restoring process waits for the end of this pipe.
    pipe: Option<OwnedFd>,
    restorer: libc::pid_t,
}

impl MachineSetting {
    /// Checks that this process may change it.
    ///
    /// # Errors
    /// [`UserError::Missing`] with the file and the reason.
    pub fn check(&self) -> Result<(), UserError> {
        let before = value_now(&self.file).map_err(|error| self.refused(&error))?;
        write(&self.file, &before).map_err(|error| self.refused(&error))
    }

    /// Changes the setting.
    ///
    /// # Errors
    /// [`UserError::Missing`] with the file and the reason.
    pub fn hold(&self) -> Result<Held, UserError> {
        let before = value_now(&self.file).map_err(|error| self.refused(&error))?;
        let held = Held::restoring(&self.file, before).map_err(|error| self.refused(&error))?;
        write(&self.file, &self.value).map_err(|error| self.refused(&error))?;
        Ok(held)
    }

    fn refused(&self, error: &io::Error) -> UserError {
        UserError::Missing(format!(
            "{}: cannot be changed: {error} (this takes root, and in a container a writable /sys)",
            self.file.display()
        ))
    }
}

impl Held {
    /// Starts the process that restores the file.
    fn restoring(file: &Path, before: String) -> io::Result<Held> {
        let path = CString::new(file.as_os_str().to_owned().into_vec())?;
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: the child makes only async-signal-safe calls, on memory from before the fork.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: both descriptors are open in the child, and `path` ends with a 0.
                unsafe { restore(reader.as_raw_fd(), writer.as_raw_fd(), &path, &before) }
            }
            restorer => Ok(Held {
                pipe: Some(writer),
                restorer,
            }),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.pipe = None;
        // SAFETY: waits for the child that `restoring` started, once.
        unsafe { libc::waitpid(self.restorer, std::ptr::null_mut(), 0) };
    }
}

/// Waits until the parent closes the pipe or ends, and writes the value. In a session of its own
/// it does not get the Ctrl-C of a terminal, nor the end of a process group.
///
/// # Safety
/// In a child of fork. `reader` and `writer` are the two ends of a pipe.
unsafe fn restore(reader: i32, writer: i32, path: &CString, value: &str) -> ! {
    // SAFETY: system calls only; the buffer and the value outlive them.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGPIPE] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::close(writer);
        let mut byte = 0u8;
        while libc::read(reader, (&raw mut byte).cast(), 1) < 0
            && *libc::__errno_location() == libc::EINTR
        {}
        let fd = libc::open(
            path.as_ptr(),
            libc::O_WRONLY | libc::O_TRUNC | libc::O_CLOEXEC,
        );
        let written = libc::write(fd, value.as_ptr().cast(), value.len());
        libc::_exit(i32::from(written != value.len() as isize))
    }
}

/// The value: the word in brackets if the file lists the possible ones.
fn value_now(file: &Path) -> io::Result<String> {
    let text = std::fs::read_to_string(file)?;
    Ok(selected(&text).unwrap_or(text.trim()).to_owned())
}

/// Writes by one system call, as such files require.
fn write(file: &Path, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(file)?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests;
