// SPDX-License-Identifier: MIT OR Apache-2.0
//! process_madvise(2) on a pidfd.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use toll_model::REGION;

use super::advice::{Advice, RemoteError};
use super::gate::{self, Call, Gate};

/// A stable handle on a process: its id may be reused after it has ended.
#[derive(Debug, Clone)]
pub(super) struct Identity(Arc<OwnedFd>);

impl Identity {
    pub(super) fn open(pid: u32) -> Result<Identity, RemoteError> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if fd < 0 {
            return Err(last_error(Advice::Collapse));
        }
        // SAFETY: the descriptor was just opened and is not owned elsewhere.
        Ok(Identity(Arc::new(unsafe {
            OwnedFd::from_raw_fd(fd as i32)
        })))
    }

    /// Whether the process has been reaped, so that its id may be reused.
    pub(super) fn is_gone(&self) -> bool {
        let nothing = std::ptr::null_mut::<libc::siginfo_t>();
        // SAFETY: signal 0 is never sent; the kernel only looks up the process.
        let found = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                0,
                nothing,
                0,
            )
        };
        found < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }
}

/// A process that supports process_madvise.
#[derive(Debug, Clone)]
pub(super) struct Remote(Identity);

impl Remote {
    /// Checks with an empty range whether advice is permitted.
    pub(super) fn open(process: &Identity) -> Result<Remote, RemoteError> {
        let not_permitted = |why: &str| Err(RemoteError::NotPermitted(why.to_owned()));
        match gate::gate(Call::ProcessMadvise) {
            Gate::Open => {}
            Gate::Filtered => return not_permitted("a seccomp filter forbids it"),
            Gate::Absent => return not_permitted("the kernel does not support it"),
        }
        let remote = Remote(process.clone());
        remote.advise(0, 0, Advice::Collapse)?;
        Ok(remote)
    }

    pub(super) fn advise(
        &self,
        start: u64,
        length: u64,
        advice: Advice,
    ) -> Result<(), RemoteError> {
        let range = libc::iovec {
            iov_base: start as *mut libc::c_void,
            iov_len: length as usize,
        };
        // SAFETY: `range` outlives the call; its address belongs to another process and is only
        // advised there.
        let done = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                self.0.0.as_raw_fd(),
                &raw const range,
                1,
                advice.number(),
                0,
            )
        };
        if done < 0 {
            Err(last_error(advice))
        } else {
            Ok(())
        }
    }
}

/// Drains the per-CPU LRU batches on all CPUs: a huge page in a batch cannot be split.
/// MADV_COLLAPSE drains them first, even if it then finds nothing, as in this empty mapping of our
/// own.
pub fn drain() {
    let length = 2 * REGION as usize;
    // SAFETY: a new mapping of our own that is not shared.
    unsafe {
        let empty = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        );
        if empty != libc::MAP_FAILED {
            libc::madvise(empty, length, Advice::Collapse.number());
            libc::munmap(empty, length);
        }
    }
}

/// Number of CAP_SYS_NICE.
const CAP_SYS_NICE: u32 = 23;

fn last_error(advice: Advice) -> RemoteError {
    let errno = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    let reason = match errno {
        // The kernel first checks for read access to the process, then for the capability.
        libc::EACCES => "CAP_SYS_PTRACE is needed for this process",
        libc::EPERM if gate::own_status().can(CAP_SYS_NICE) => "the system forbids it",
        libc::EPERM => "CAP_SYS_NICE is needed",
        libc::ENOSYS => "the kernel does not support it",
        _ => return RemoteError::from_errno(errno, advice),
    };
    RemoteError::NotPermitted(reason.to_owned())
}
