// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether programs get huge pages without advice.
//!
//! `PR_SET_THP_DISABLE`: a process disables huge pages for itself; its children inherit that, also
//! across exec.

use std::io;

use toll_linux::{Root, sys};

/// Disables them only for memory that is not advised: since Linux 6.18
/// (include/uapi/linux/prctl.h).
const PR_THP_DISABLE_EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

/// prctl reads whole registers.
const NONE: libc::c_ulong = 0;

/// The huge pages that a target may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Switch {
    /// The setting of this process.
    #[default]
    Inherited,
    /// What the machine's settings allow.
    On,
    /// Only in advised memory, as on a machine with the setting `madvise`.
    Advised,
    /// No huge page.
    Off,
}

impl Switch {
    /// Applies the setting to the calling process. Async-signal-safe.
    ///
    /// # Errors
    /// The kernel does not support this state; see [`can_be_advised_only`].
    pub fn set(self) -> io::Result<()> {
        match self {
            Switch::Inherited => Ok(()),
            Switch::On => disable(0, 0),
            Switch::Advised => disable(1, PR_THP_DISABLE_EXCEPT_ADVISED),
            Switch::Off => disable(1, 0),
        }
    }
}

fn disable(disabled: libc::c_ulong, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: PR_SET_THP_DISABLE takes no pointer.
    match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disabled, flags, NONE, NONE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The state of this process: bit 0 means disabled, the others are flags.
fn state() -> libc::c_ulong {
    // SAFETY: PR_GET_THP_DISABLE takes no pointer.
    let state = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, NONE, NONE, NONE, NONE) };
    // A kernel without this call disables nothing.
    state.max(0) as libc::c_ulong
}

/// Whether this process was started with huge pages disabled.
pub fn is_off() -> bool {
    state() == 1
}

/// Whether all memory is huge on this machine without advice, so that a program as it is run today
/// has huge pages already.
pub fn is_always() -> bool {
    let thp = sys::Thp::read(&Root::system());
    thp.is_some_and(|thp| thp.region_mode() == sys::Mode::Always)
}

/// Whether the kernel supports [`Switch::Advised`].
pub fn can_be_advised_only() -> bool {
    let before = state();
    let can = Switch::Advised.set().is_ok();
    if can {
        let _ = disable(before & 1, before & !1);
    }
    can
}

#[cfg(test)]
mod tests;
