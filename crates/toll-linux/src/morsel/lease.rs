// SPDX-License-Identifier: MIT OR Apache-2.0
//! Leases: whether other processes use a file.

use std::fs::File;
use std::os::fd::AsRawFd;

use rustix::io::Errno;

/// Whether no process has a file open or mapped for writing; false if unknown. A later open for
/// writing updates the change time.
pub(super) fn is_unwritten(file: &File) -> bool {
    let leased = lease(file, libc::F_RDLCK).is_ok();
    leased && lease(file, libc::F_UNLCK).is_ok()
}

/// Takes a lease on a file until it is closed: the kernel grants `F_WRLCK` to the only process that
/// has it open or mapped, and `F_RDLCK` if no process can write to it; otherwise the error is
/// `AGAIN`.
pub(super) fn lease(file: &File, kind: libc::c_int) -> Result<(), Errno> {
    /// Missing in the libc crate for this target.
    const F_SETSIG: libc::c_int = 10;
    let fd = file.as_raw_fd();
    // SAFETY: neither call takes a pointer. A lease break sends us a signal: SIGURG, which is
    // ignored by default.
    let leased = unsafe {
        libc::fcntl(fd, F_SETSIG, libc::SIGURG);
        libc::fcntl(fd, libc::F_SETLEASE, kind)
    };
    match leased {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
