// SPDX-License-Identifier: MIT OR Apache-2.0
//! A handle on another process.

use toll_model::PAGE;

use super::advice::{Advice, RemoteError};
use super::inject::Target;
use super::{permission, process};
use crate::{Root, proc};

/// Mechanism for reaching the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    ProcessMadvise,
    Ptrace,
}

/// A handle on another process for advising its memory.
#[derive(Debug)]
pub struct RemoteProcess {
    target: Target,
    /// `None` if process_madvise is not available.
    direct: Option<process::Remote>,
    /// Why ptrace may not be used; `None` if it may.
    no_ptrace: Option<String>,
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
        let remote = RemoteProcess {
            target: Target::new(pid, own_child, identity.ok()),
            direct: direct.as_ref().ok().cloned(),
            no_ptrace: permission::forbidden(pid, &status, own_child),
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
        self.target.pid()
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
    /// stays: pages that only the huge page added are not freed. A page in a batch of a CPU stays
    /// huge: [`drain`](super::drain) once before several splits.
    ///
    /// # Errors
    /// As [`RemoteProcess::collapse`].
    pub fn split(&self, region: u64) -> Result<(), RemoteError> {
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
                None => self.target.advise((start, length), advice),
            },
        }
    }
}
