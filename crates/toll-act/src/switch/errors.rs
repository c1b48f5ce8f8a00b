// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a process cannot be switched.

use toll_linux::remote::RemoteError;

use crate::error::UserError;

pub(super) fn gone(pid: u32) -> UserError {
    UserError::Target(format!(
        "--pid {pid}: the process has ended, or has executed another program"
    ))
}

pub(super) fn refused(pid: u32, error: &RemoteError) -> UserError {
    match error {
        RemoteError::Gone => gone(pid),
        error => UserError::Missing(format!("--pid {pid}: {error}")),
    }
}

pub(super) fn unreadable(pid: u32, error: &std::io::Error) -> UserError {
    let why = match error.raw_os_error() {
        Some(libc::ENOTTY) => "needs PAGEMAP_SCAN (Linux 6.7)".to_owned(),
        _ => error.to_string(),
    };
    UserError::Missing(format!(
        "--pid {pid}: its page sizes cannot be read region by region, so they could not be \
         restored: {why}"
    ))
}
