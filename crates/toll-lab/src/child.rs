// SPDX-License-Identifier: MIT OR Apache-2.0
//! Child processes that the lab starts.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the kernel send this signal to the command when our process ends, however it ends.
pub fn end_with_us(command: &mut Command, signal: i32) {
    // SAFETY: prctl is one system call; it takes no lock and no memory.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
            Ok(())
        });
    }
}
