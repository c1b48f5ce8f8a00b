// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a seccomp filter lets this process make the calls that the hand needs.
//!
//! A filter answers before the kernel looks at what is asked. So a call that cannot succeed
//! (of a process that cannot be) tells a filter's refusal from the kernel's. It is made in
//! a child: some filters kill.

use std::sync::OnceLock;

use crate::Root;
use crate::proc::{self, Status};

/// A system call that filters of containers often forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    ProcessMadvise,
    Ptrace,
    /// Not needed; it tells by whose rules a filter was made.
    Kcmp,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The kernel decides on it.
    Open,
    /// A seccomp filter forbids it, or kills who makes it.
    Filtered,
    /// The kernel has none.
    Absent,
}

/// What becomes of `call` when this process makes it. Asked once.
pub fn gate(call: Call) -> Gate {
    static FOUND: [OnceLock<Gate>; 3] = [const { OnceLock::new() }; 3];
    *FOUND[call as usize].get_or_init(|| match own_status().seccomp {
        0 => Gate::Open,
        _ => probe(call),
    })
}

/// The status of this process; nothing is known where /proc is not mounted.
pub(super) fn own_status() -> Status {
    proc::status(&Root::system(), std::process::id()).unwrap_or_default()
}

/// What the child says with its exit status.
const OPEN: i32 = 10;
const FILTERED: i32 = 11;
const ABSENT: i32 = 12;

fn probe(call: Call) -> Gate {
    // SAFETY: the child makes system calls only, and ends.
    let child = unsafe { libc::fork() };
    match child {
        // Nothing is known: the call itself will tell.
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

/// Makes the call for a process that cannot be, and ends with the answer.
///
/// # Safety
/// Only in a child that shall end.
unsafe fn ask(call: Call) -> ! {
    // SAFETY: no memory is passed but places of this function.
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
                let advice = super::Advice::Collapse.number();
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

/// The exit status of a child of ours; `None` if it was killed.
fn exit_status(child: i32) -> Option<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a valid place for the answer.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) };
        if ended == child {
            return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
        }
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return None;
        }
    }
}
