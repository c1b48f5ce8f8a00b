// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hand that reaches into another process and advises its memory.
//!
//! `process_madvise` needs CAP_SYS_NICE, and CAP_SYS_PTRACE for processes of others and
//! under Docker's seccomp filter. It takes MADV_COLLAPSE and MADV_COLD. Everything else
//! goes by one short ptrace stop with an injected madvise.

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

/// Advice that the hand can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Collapse into huge pages now (MADV_COLLAPSE).
    Collapse,
    /// Huge pages from the next fault on (MADV_HUGEPAGE).
    Huge,
    /// No huge pages from now on (MADV_NOHUGEPAGE).
    NoHuge,
    /// Rather reclaim this than other memory (MADV_COLD): for a part of a huge page the
    /// kernel splits it first, which is what [`Hand::split`] is after.
    Cold,
}

impl Advice {
    /// The number that madvise(2) takes.
    pub fn number(self) -> i32 {
        match self {
            Advice::Collapse => 25,
            Advice::Huge => libc::MADV_HUGEPAGE,
            Advice::NoHuge => libc::MADV_NOHUGEPAGE,
            Advice::Cold => libc::MADV_COLD,
        }
    }
}

/// Why advice could not be given.
#[derive(Debug, Error)]
pub enum HandError {
    /// Nothing to act on yet, or nothing free just now: try again later.
    #[error("nothing to collapse there yet ({0})")]
    NotYet(io::Error),
    /// The range holds what this advice cannot act on, or no such mapping is left.
    #[error("the range cannot be advised ({0})")]
    Refused(io::Error),
    /// The kernel or a rule forbids it; the process is left alone.
    #[error("{0}")]
    NotPermitted(String),
    /// The process is gone.
    #[error("the process has ended")]
    Gone,
}

impl HandError {
    /// Whether the same call may work later.
    pub fn try_again(&self) -> bool {
        matches!(self, HandError::NotYet(_))
    }

    fn not_yet(errno: i32) -> HandError {
        HandError::NotYet(io::Error::from_raw_os_error(errno))
    }

    /// Sorts the error of a system call that gave `advice`.
    fn from_errno(errno: i32, advice: Advice) -> HandError {
        let error = io::Error::from_raw_os_error(errno);
        match errno {
            libc::EINVAL if advice != Advice::Collapse => HandError::Refused(error),
            libc::EINVAL | libc::EAGAIN | libc::EBUSY | libc::ENOMEM => HandError::not_yet(errno),
            libc::ESRCH => HandError::Gone,
            libc::EPERM | libc::EACCES => HandError::NotPermitted(error.to_string()),
            _ => HandError::Refused(error),
        }
    }
}

/// How the hand reaches the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    ProcessMadvise,
    Ptrace,
}

/// A hand on one process.
#[derive(Debug)]
pub struct Hand {
    pid: u32,
    own_child: bool,
    /// `None` on kernels without pidfds (before 5.3).
    identity: Option<process::Identity>,
    /// `None` where process_madvise does not work.
    direct: Option<process::Remote>,
    /// Why ptrace may not be used; `None`: it may.
    no_ptrace: Option<String>,
    waits: interrupted::Waits,
}

impl Hand {
    /// A hand on process `pid`. `own_child`: the caller started it, so a ptrace
    /// stop is permitted even under a restricted Yama.
    ///
    /// # Errors
    /// [`HandError::Gone`], or [`HandError::NotPermitted`] where neither way is open.
    pub fn for_pid(pid: u32, own_child: bool) -> Result<Hand, HandError> {
        let status = proc::status(&Root::system(), pid).map_err(|_| HandError::Gone)?;
        let identity = process::Identity::open(pid);
        let direct = match &identity {
            Ok(identity) => process::Remote::open(identity),
            Err(HandError::Gone) => return Err(HandError::Gone),
            Err(error) => Err(HandError::NotPermitted(error.to_string())),
        };
        let no_ptrace = inject::forbidden(pid, &status, own_child);
        let hand = Hand {
            pid,
            own_child,
            identity: identity.ok(),
            direct: direct.as_ref().ok().cloned(),
            no_ptrace,
            waits: interrupted::Waits::default(),
        };
        match (&hand.direct, &hand.no_ptrace, direct.err()) {
            (None, _, Some(HandError::Gone)) => Err(HandError::Gone),
            (None, Some(reason), Some(error)) => Err(HandError::NotPermitted(format!(
                "process_madvise: {error}; ptrace: {reason}"
            ))),
            _ => Ok(hand),
        }
    }

    /// The same hand without process_madvise: what an unprivileged tollfree has.
    ///
    /// # Errors
    /// [`HandError::NotPermitted`] where ptrace may not be used.
    pub fn by_ptrace(self) -> Result<Hand, HandError> {
        match self.no_ptrace {
            Some(reason) => Err(HandError::NotPermitted(reason)),
            None => Ok(Hand {
                direct: None,
                ..self
            }),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process is known to have ended, so that its id may be another's.
    fn is_gone(&self) -> bool {
        self.identity.as_ref().is_some_and(|known| known.is_gone())
    }

    /// The way that [`Hand::collapse`] takes.
    pub fn reach(&self) -> Reach {
        match self.direct {
            Some(_) => Reach::ProcessMadvise,
            None => Reach::Ptrace,
        }
    }

    /// Why only MADV_COLLAPSE can be given; `None` if all advice can.
    pub fn collapse_only(&self) -> Option<&str> {
        self.no_ptrace.as_deref()
    }

    /// Collapses `start..start + length` (multiples of 4096) into huge pages.
    ///
    /// # Errors
    /// [`HandError::NotYet`] where a later try may work.
    pub fn collapse(&self, start: u64, length: u64) -> Result<(), HandError> {
        self.advise(start, length, Advice::Collapse)
    }

    /// Splits the huge page that holds `region` into small ones again, if there is one.
    /// Its memory stays: pages that only the huge page brought are not given back.
    ///
    /// # Errors
    /// As [`Hand::collapse`].
    pub fn split(&self, region: u64) -> Result<(), HandError> {
        process::drain();
        self.advise(region, PAGE, Advice::Cold)
    }

    /// Gives advice for `start..start + length` (multiples of 4096).
    ///
    /// # Errors
    /// As [`Hand::collapse`]; [`HandError::NotPermitted`] for advice other than
    /// collapse where ptrace may not be used.
    pub fn advise(&self, start: u64, length: u64, advice: Advice) -> Result<(), HandError> {
        match (&self.direct, advice) {
            (Some(remote), Advice::Collapse | Advice::Cold) => remote.advise(start, length, advice),
            _ => match &self.no_ptrace {
                Some(reason) => Err(HandError::NotPermitted(reason.clone())),
                None => inject::advise(self, (start, length), advice),
            },
        }
    }
}
