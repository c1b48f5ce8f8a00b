// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advises memory of another process.
//!
//! `process_madvise` needs CAP_SYS_NICE, and CAP_SYS_PTRACE for processes of other users and under
//! Docker's seccomp filter. It supports MADV_COLLAPSE and MADV_COLD. All other advice is given in
//! one short ptrace stop with an injected madvise.

mod gate;
mod inject;
mod interrupted;
mod process;
mod threads;
mod tracee;
mod vdso;

use std::io;

use thiserror::Error;
use toll_model::PAGE;

use crate::{Root, proc};

pub use gate::{Call, Gate, gate};

/// Supported advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Collapse into huge pages now (MADV_COLLAPSE).
    Collapse,
    /// Huge pages from the next fault on (MADV_HUGEPAGE).
    Huge,
    /// No huge pages from now on (MADV_NOHUGEPAGE).
    NoHuge,
    /// Reclaim this before other memory (MADV_COLD). For a part of a huge page the kernel splits it
    /// first, which is what [`RemoteProcess::split`] uses it for.
    Cold,
}

impl Advice {
    /// Returns the number for madvise(2).
    pub fn number(self) -> i32 {
        match self {
            Advice::Collapse => 25,
            Advice::Huge => libc::MADV_HUGEPAGE,
            Advice::NoHuge => libc::MADV_NOHUGEPAGE,
            Advice::Cold => libc::MADV_COLD,
        }
    }
}

/// Why advice failed.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// Nothing to act on yet, or no free memory just now: try again later.
    #[error("nothing to collapse there yet ({0})")]
    NotYet(io::Error),
    /// The range contains memory that this advice does not support, or is no longer mapped.
    #[error("the range cannot be advised ({0})")]
    Refused(io::Error),
    /// The kernel or a rule forbids it; the process is not touched.
    #[error("{0}")]
    NotPermitted(String),
    /// The process has ended.
    #[error("the process has ended")]
    Gone,
}

impl RemoteError {
    /// Whether the same call may succeed later.
    pub fn try_again(&self) -> bool {
        matches!(self, RemoteError::NotYet(_))
    }

    fn not_yet(errno: i32) -> RemoteError {
        RemoteError::NotYet(io::Error::from_raw_os_error(errno))
    }

    /// Classifies the error of a system call that gave `advice`.
    fn from_errno(errno: i32, advice: Advice) -> RemoteError {
        let error = io::Error::from_raw_os_error(errno);
        match errno {
            libc::EINVAL if advice != Advice::Collapse => RemoteError::Refused(error),
            libc::EINVAL | libc::EAGAIN | libc::EBUSY | libc::ENOMEM => RemoteError::not_yet(errno),
            libc::ESRCH => RemoteError::Gone,
            libc::EPERM | libc::EACCES => RemoteError::NotPermitted(error.to_string()),
            _ => RemoteError::Refused(error),
        }
    }
}

/// Mechanism for reaching the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    ProcessMadvise,
    Ptrace,
}

/// A handle on another process for advising its memory.
#[derive(Debug)]
pub struct RemoteProcess {
    pid: u32,
    own_child: bool,
    /// `None` on kernels without pidfds (before 5.3).
    identity: Option<process::Identity>,
    /// `None` if process_madvise is not available.
    direct: Option<process::Remote>,
    /// Why ptrace may not be used; `None` if it may.
    no_ptrace: Option<String>,
    waits: interrupted::Waits,
}

impl RemoteProcess {
    /// Opens process `pid`. `own_child`: the caller started it, so a ptrace stop is permitted even
    /// under a restricted Yama.
    ///
    /// # Errors
    /// [`RemoteError::Gone`], or [`RemoteError::NotPermitted`] if no mechanism is available.
    pub fn for_pid(pid: u32, own_child: bool) -> Result<RemoteProcess, RemoteError> {
        let status = proc::status(&Root::system(), pid).map_err(|_| RemoteError::Gone)?;
        let identity = process::Identity::open(pid);
        let direct = match &identity {
            Ok(identity) => process::Remote::open(identity),
            Err(RemoteError::Gone) => return Err(RemoteError::Gone),
            Err(error) => Err(RemoteError::NotPermitted(error.to_string())),
        };
        let no_ptrace = inject::forbidden(pid, &status, own_child);
        let remote = RemoteProcess {
            pid,
            own_child,
            identity: identity.ok(),
            direct: direct.as_ref().ok().cloned(),
            no_ptrace,
            waits: interrupted::Waits::default(),
        };
        match (&remote.direct, &remote.no_ptrace, direct.err()) {
            (None, _, Some(RemoteError::Gone)) => Err(RemoteError::Gone),
            (None, Some(reason), Some(error)) => Err(RemoteError::NotPermitted(format!(
                "process_madvise: {error}; ptrace: {reason}"
            ))),
            _ => Ok(remote),
        }
    }

    /// Opens the process without process_madvise: what an unprivileged tollfree can use.
    ///
    /// # Errors
    /// [`RemoteError::NotPermitted`] if ptrace may not be used.
    pub fn by_ptrace(self) -> Result<RemoteProcess, RemoteError> {
        match self.no_ptrace {
            Some(reason) => Err(RemoteError::NotPermitted(reason)),
            None => Ok(RemoteProcess {
                direct: None,
                ..self
            }),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process is known to have ended, so that its id may be reused.
    fn is_gone(&self) -> bool {
        self.identity.as_ref().is_some_and(|known| known.is_gone())
    }

    /// Returns the mechanism that [`RemoteProcess::collapse`] uses.
    pub fn reach(&self) -> Reach {
        match self.direct {
            Some(_) => Reach::ProcessMadvise,
            None => Reach::Ptrace,
        }
    }

    /// Returns why only MADV_COLLAPSE is supported; `None` if all advice is.
    pub fn collapse_only(&self) -> Option<&str> {
        self.no_ptrace.as_deref()
    }

    /// Collapses `start..start + length` (multiples of 4096) into huge pages.
    ///
    /// # Errors
    /// [`RemoteError::NotYet`] if a later try may succeed.
    pub fn collapse(&self, start: u64, length: u64) -> Result<(), RemoteError> {
        self.advise(start, length, Advice::Collapse)
    }

    /// Splits the huge page that holds `region` into 4 KiB pages, if there is one. Its memory
    /// stays: pages that only the huge page added are not freed.
    ///
    /// # Errors
    /// As [`RemoteProcess::collapse`].
    pub fn split(&self, region: u64) -> Result<(), RemoteError> {
        process::drain();
        self.advise(region, PAGE, Advice::Cold)
    }

    /// Gives advice for `start..start + length` (multiples of 4096).
    ///
    /// # Errors
    /// As [`RemoteProcess::collapse`]; [`RemoteError::NotPermitted`] for advice other than collapse
    /// if ptrace may not be used.
    pub fn advise(&self, start: u64, length: u64, advice: Advice) -> Result<(), RemoteError> {
        match (&self.direct, advice) {
            (Some(remote), Advice::Collapse | Advice::Cold) => remote.advise(start, length, advice),
            _ => match &self.no_ptrace {
                Some(reason) => Err(RemoteError::NotPermitted(reason.clone())),
                None => inject::advise(self, (start, length), advice),
            },
        }
    }
}
