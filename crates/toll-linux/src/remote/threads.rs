// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects the thread to stop: one that a stop does not harm.

use super::advice::RemoteError;
use super::interrupted;
use crate::{Root, proc};

/// Maximum number of threads inspected: each costs two reads.
const LOOKED_AT: usize = 64;

/// Effect of a stop on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    /// It continues as if nothing had happened.
    None,
    /// A timeout restarts.
    Delay,
    /// A call returns after a partial transfer. Programs that catch no signals may not handle that.
    CutShort,
}

/// Returns the best thread of `pid` to stop: the first that a stop does not harm, or one with a
/// timeout that restarts.
///
/// # Errors
/// [`RemoteError::Gone`], or [`RemoteError::NotYet`] while no thread can be stopped without harm.
pub(super) fn choose(pid: u32) -> Result<u32, RemoteError> {
    let root = Root::system();
    let mut best = None;
    let mut alive = false;
    for thread in all(&root, pid).take(LOOKED_AT) {
        let Ok(stat) = proc::stat(&root, thread) else {
            continue;
        };
        alive |= !matches!(stat.state, 'Z' | 'X');
        // In uninterruptible sleep: it would stop only after it wakes up. Or already stopped.
        if matches!(stat.state, 'D' | 'T' | 't' | 'Z' | 'X') {
            continue;
        }
        let line = root.line(format!("/proc/{thread}/syscall"));
        let harm = line.map_or(Harm::None, |line| harm(&line));
        if harm == Harm::None {
            return Ok(thread);
        }
        if best.is_none() && harm == Harm::Delay {
            best = Some(thread);
        }
    }
    match best {
        Some(thread) => Ok(thread),
        None if alive => Err(RemoteError::not_yet(libc::EAGAIN)),
        None => Err(RemoteError::Gone),
    }
}

/// Returns the threads of a process, the main thread first.
fn all(root: &Root, pid: u32) -> impl Iterator<Item = u32> {
    let names = root.names(format!("/proc/{pid}/task"));
    let mut threads: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    threads.sort_by_key(|thread| (*thread != pid, *thread));
    threads.into_iter()
}

/// Determines the effect of a stop on a thread. `line` is its `/proc/PID/syscall`: `running`, or
/// the number of the system call that it sleeps in (-1: none), its arguments and two addresses.
fn harm(line: &str) -> Harm {
    let mut words = line.split_ascii_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse::<u64>().ok()) else {
        return Harm::None;
    };
    let mut arguments = [0; 6];
    for (argument, word) in arguments.iter_mut().zip(words) {
        let digits = word.trim_start_matches("0x");
        *argument = u64::from_str_radix(digits, 16).unwrap_or(0);
    }
    if may_be_cut_short(number as i64, &arguments) {
        Harm::CutShort
    } else if interrupted::has_timeout(number, &arguments) {
        Harm::Delay
    } else {
        Harm::None
    }
}

/// Whether an interrupted sleeping call returns its progress so far.
fn may_be_cut_short(number: i64, arguments: &[u64; 6]) -> bool {
    let waits_for_all = |flags: u64| flags & libc::MSG_WAITALL as u64 != 0;
    match number {
        libc::SYS_write
        | libc::SYS_writev
        | libc::SYS_pwrite64
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_recvmmsg
        | libc::SYS_sendfile
        | libc::SYS_splice
        | libc::SYS_tee
        | libc::SYS_vmsplice
        | libc::SYS_copy_file_range
        | libc::SYS_getrandom => true,
        libc::SYS_recvfrom => waits_for_all(arguments[3]),
        libc::SYS_recvmsg => waits_for_all(arguments[2]),
        // It returns the number of submitted requests, but not that it has not waited.
        libc::SYS_io_uring_enter => arguments[1] != 0,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
