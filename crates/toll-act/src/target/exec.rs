// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a child does between fork and exec, and how a failed start is classified.

use std::ffi::OsStr;
use std::io;

use crate::error::UserError;
use crate::thp::Switch;
use crate::{inherited, signals};

/// The actions in the child between fork and exec.
#[derive(Clone)]
pub(super) struct BeforeExec {
    pub mask: libc::sigset_t,
    pub dispositions: Vec<(i32, libc::sigaction)>,
    pub thp: Switch,
    pub group: bool,
    /// The standard descriptors that are not inherited.
    pub replaced: [bool; 3],
    pub parent: u32,
}

impl BeforeExec {
    /// Makes only async-signal-safe calls.
    pub fn run(&self) -> io::Result<()> {
        // SAFETY: none of these calls takes a pointer.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
            if libc::getppid() as u32 != self.parent {
                libc::_exit(125);
            }
            if self.group {
                libc::setpgid(0, 0);
            }
        }
        self.thp.set()?;
        inherited::restore_closed(self.replaced);
        inherited::restore_sigpipe();
        for (signal, action) in &self.dispositions {
            signals::set(*signal, action);
        }
        signals::set_mask(&self.mask);
        Ok(())
    }
}

/// Classifies a failed start: the program does not exist, is not executable, or a system limit is
/// reached.
pub(super) fn exec_error(program: &OsStr, error: io::Error) -> anyhow::Error {
    let program = program.to_string_lossy().into_owned();
    match error.raw_os_error() {
        Some(libc::ENOENT) => UserError::NotFound { program }.into(),
        Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE) | None => {
            anyhow::Error::new(error).context(format!("{program}: cannot be started"))
        }
        Some(_) => UserError::NotExecutable {
            program,
            detail: error.to_string(),
        }
        .into(),
    }
}
