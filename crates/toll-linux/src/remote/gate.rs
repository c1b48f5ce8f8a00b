// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether a seccomp filter permits the system calls that [`super::RemoteProcess`] needs.
//!
//! A filter runs before the kernel checks the arguments. A call that cannot succeed (on a process
//! that cannot exist) therefore distinguishes a filter's refusal from the kernel's. The call is
//! made in a child, since some filters kill the caller.

use std::sync::OnceLock;

use super::advice::Advice;
use crate::Root;
use crate::proc::{self, Status};

/// A system call that container filters often forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    ProcessMadvise,
    Ptrace,
    /// Not needed for advice; it identifies the author of a filter.
    Kcmp,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The call reaches the kernel.
    Open,
    /// A seccomp filter forbids it, or kills the caller.
    Filtered,
    /// The kernel does not implement it.
    Absent,
}

/// Returns the outcome of `call` in this process. Probed once.
pub fn gate(call: Call) -> Gate {
    static FOUND: [OnceLock<Gate>; 3] = [const { OnceLock::new() }; 3];
    *FOUND[call as usize].get_or_init(|| match own_status().seccomp {
        0 => Gate::Open,
        _ => probe(call),
    })
}

/// Returns the status of this process; defaults if /proc is not mounted.
pub(super) fn own_status() -> Status {
    proc::status(&Root::system(), std::process::id()).unwrap_or_default()
}

/// Exit status of the child.
const OPEN: i32 = 10;
const FILTERED: i32 = 11;
const ABSENT: i32 = 12;

fn probe(call: Call) -> Gate {
    // SAFETY: the child makes only system calls and exits.
    let child = unsafe { libc::fork() };
    match child {
        // Unknown: the call itself will show the outcome.
        -1 => Gate::Open,
        // SAFETY: as above.
        0 => unsafe { ask(call) },
        child => match exit_status(child) {
            Some(OPEN) => Gate::Open,
            Some(ABSENT) => Gate::Absent,
            _ => Gate::Filtered,
        },
    }
}

/// Makes the call on a process that cannot exist, and exits with the outcome.
///
/// # Safety
/// Only in a child process that is to exit.
unsafe fn ask(call: Call) -> ! {
    // SAFETY: all pointers passed are to locals of this function.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        let nobody = -1isize;
        let range = libc::iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let result = match call {
            Call::ProcessMadvise => {
                let advice = Advice::Collapse.number();
                let range = &raw const range;
                libc::syscall(libc::SYS_process_madvise, nobody, range, 1, advice, 0)
            }
            Call::Ptrace => libc::syscall(libc::SYS_ptrace, libc::PTRACE_CONT, nobody, 0, 0),
            Call::Kcmp => libc::syscall(libc::SYS_kcmp, nobody, nobody, 0, 0, 0),
        };
        libc::_exit(match *libc::__errno_location() {
            libc::ENOSYS if result < 0 => ABSENT,
            libc::EPERM | libc::EACCES if result < 0 => FILTERED,
            _ => OPEN,
        })
    }
}

/// Returns the exit status of a child; `None` if it was killed.
fn exit_status(child: i32) -> Option<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid for the result.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) };
        if ended == child {
            return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        }
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
}
