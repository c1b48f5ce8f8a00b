// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pseudo-terminals.

use std::fs::File;
use std::os::fd::FromRawFd;

/// Opens a terminal. Returns our end, and the end for a program.
pub fn terminal(rows: u16, columns: u16) -> (File, File) {
    let (mut ours, mut theirs) = (0, 0);
    let none = std::ptr::null_mut();
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the pointers are valid, and the new descriptors are not shared.
    unsafe {
        let made = libc::openpty(&mut ours, &mut theirs, none, none.cast(), &size);
        assert_eq!(made, 0);
        for end in [ours, theirs] {
            assert_eq!(libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC), 0);
        }
        (File::from_raw_fd(ours), File::from_raw_fd(theirs))
    }
}
