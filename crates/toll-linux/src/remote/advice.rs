// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advice, and why it fails.

use std::io;

use thiserror::Error;

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
    /// first, which is what [`super::RemoteProcess::split`] uses it for.
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

    pub(super) fn not_yet(errno: i32) -> RemoteError {
        RemoteError::NotYet(io::Error::from_raw_os_error(errno))
    }

    /// Classifies the error of a system call that gave `advice`.
    pub(super) fn from_errno(errno: i32, advice: Advice) -> RemoteError {
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
