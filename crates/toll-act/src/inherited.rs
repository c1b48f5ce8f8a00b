// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state that this process inherited, before Rust's runtime changed it.
//!
//! The runtime ignores SIGPIPE and opens /dev/null in place of closed standard descriptors. A
//! target must inherit what tollfree inherited, so a constructor that runs before the runtime saves
//! both.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Saves the state. Called by the dynamic loader before `main`, single-threaded.
extern "C" fn note() {
    for (fd, closed) in (0..).zip(&CLOSED) {
        // SAFETY: F_GETFD takes no pointer.
        closed.store(unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0, Relaxed);
    }
    // SAFETY: a zeroed sigaction is valid, and only written to.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action);
        PIPE_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

/// Restores the inherited SIGPIPE disposition. Async-signal-safe.
pub fn restore_sigpipe() {
    let action = if PIPE_IGNORED.load(Relaxed) {
        libc::SIG_IGN
    } else {
        libc::SIG_DFL
    };
    // SAFETY: both are dispositions that need no handler.
    unsafe { libc::signal(libc::SIGPIPE, action) };
}

/// Closes the standard descriptors that were closed at the start, except those in `keep` (replaced
/// since). Async-signal-safe.
pub(crate) fn restore_closed(keep: [bool; 3]) {
    for ((fd, closed), keep) in (0..).zip(&CLOSED).zip(keep) {
        if closed.load(Relaxed) && !keep {
            // SAFETY: the descriptor is the runtime's /dev/null, unused by other code.
            unsafe { libc::close(fd) };
        }
    }
}
