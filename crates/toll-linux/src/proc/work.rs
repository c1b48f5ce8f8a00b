// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process has used and done so far: CPU time, and calls of read and write.

use std::io;
use std::time::Duration;

use super::damaged;
use crate::Root;

/// Returns the CPU time of all threads of a process, also of those that have ended, in the
/// resolution of the scheduler. `/proc/PID/stat` has it in units of 10 ms.
///
/// # Errors
/// There is no such process.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both places outlive the calls.
    let error = unsafe { libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: as above.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the number of calls of read and write and their relatives (pread, readv, sendfile) by a
/// process, also by threads and waited-for children that have ended. Calls of send and recv do not
/// count.
///
/// # Errors
/// No such process, no permission, or a kernel without I/O accounting.
pub fn calls(root: &Root, pid: u32) -> io::Result<u64> {
    let path = format!("/proc/{pid}/io");
    let text = root.read(&path)?;
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        let value = lines.find(|(key, _)| *key == name).map(|(_, value)| value);
        value.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let calls = field("syscr").zip(field("syscw"));
    let calls = calls.ok_or_else(|| damaged(&path, "has no syscr and syscw"))?;
    Ok(calls.0.saturating_add(calls.1))
}

#[cfg(test)]
mod tests;
