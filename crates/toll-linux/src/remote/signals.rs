// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps signals away while a process is stopped.

use std::mem;

/// Blocks all signals in this thread while it holds a stopped process, so that Ctrl-C cannot end
/// tollfree meanwhile.
pub(super) struct Undisturbed(libc::sigset_t);

impl Undisturbed {
    pub(super) fn new() -> Undisturbed {
        // SAFETY: both sets are valid, and sigfillset initialises the first.
        unsafe {
            let mut all: libc::sigset_t = mem::zeroed();
            let mut before: libc::sigset_t = mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Undisturbed(before)
        }
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        // SAFETY: the set is the one that pthread_sigmask returned.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}
