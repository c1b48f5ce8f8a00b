// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls that a stop interrupts and that the kernel does not restart.
//!
//! A stop wakes a sleeping thread as a signal does. Most calls then fail with one of the kernel's
//! ERESTART errors and are restarted, with the rest of their timeout, when the thread continues.
//! Some fail with EINTR immediately. A program that catches no signals never sees that error
//! otherwise, and may not handle it.
//!
//! For such a call the result is replaced by ERESTARTNOHAND. The kernel then decides: it restarts
//! the call, unless a signal that the program catches has arrived; in that case the call fails with
//! EINTR, as without the stop.
//!
//! A call that is restarted in this way waits for its whole timeout again. The time that it waited
//! before its first stop cannot be determined, so it may end late by that much. The time from the
//! first stop on is tracked: a stop after its expiry ends the call. Timeouts therefore expire even
//! with repeated stops.

use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::tracee::Tracee;
use crate::Root;

/// `ERESTARTNOHAND` of the kernel's include/linux/errno.h: restart, unless a handler runs.
const RESTART_UNLESS_HANDLED: i64 = 514;

/// Location of a call's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timeout {
    /// No timeout, or one that cannot be read.
    Unknown,
    /// Milliseconds in this argument (from 0); negative: none.
    Milliseconds(usize),
    /// This argument points to a timespec; 0: none.
    Timespec(usize),
    /// `SO_RCVTIMEO` or `SO_SNDTIMEO` of the socket in argument 0.
    Socket(i32),
}

/// A call that may fail with EINTR without a signal, and without side effects.
#[derive(Debug, Clone, Copy)]
struct Repeatable {
    number: i64,
    timeout: Timeout,
    /// Return value after the timeout.
    late: i64,
}

const fn repeatable(number: i64, timeout: Timeout, late: i32) -> Repeatable {
    Repeatable {
        number,
        timeout,
        late: -(late as i64),
    }
}

/// Calls that are restarted. close() is excluded: it has closed the descriptor when it fails.
/// ioctl() is excluded: its side effects are unknown.
const REPEATABLE: [Repeatable; 26] = {
    use Timeout::{Milliseconds, Socket, Timespec, Unknown};
    use libc::{EAGAIN, EINPROGRESS, SO_RCVTIMEO, SO_SNDTIMEO};
    [
        repeatable(libc::SYS_epoll_wait, Milliseconds(3), 0),
        repeatable(libc::SYS_epoll_pwait, Milliseconds(3), 0),
        repeatable(libc::SYS_epoll_pwait2, Timespec(3), 0),
        repeatable(libc::SYS_io_getevents, Timespec(4), 0),
        repeatable(libc::SYS_io_uring_enter, Unknown, 0),
        repeatable(libc::SYS_rt_sigtimedwait, Timespec(2), EAGAIN),
        repeatable(libc::SYS_semop, Unknown, EAGAIN),
        repeatable(libc::SYS_semtimedop, Timespec(3), EAGAIN),
        // These fail with EINTR if the remaining time cannot be written.
        repeatable(libc::SYS_poll, Unknown, 0),
        repeatable(libc::SYS_ppoll, Unknown, 0),
        repeatable(libc::SYS_select, Unknown, 0),
        repeatable(libc::SYS_pselect6, Unknown, 0),
        // Sockets with a timeout.
        repeatable(libc::SYS_read, Socket(SO_RCVTIMEO), EAGAIN),
        repeatable(libc::SYS_readv, Socket(SO_RCVTIMEO), EAGAIN),
        repeatable(libc::SYS_recvfrom, Socket(SO_RCVTIMEO), EAGAIN),
        repeatable(libc::SYS_recvmsg, Socket(SO_RCVTIMEO), EAGAIN),
        repeatable(libc::SYS_recvmmsg, Socket(SO_RCVTIMEO), EAGAIN),
        repeatable(libc::SYS_accept, Socket(SO_RCVTIMEO), EAGAIN),
        repeatable(libc::SYS_accept4, Socket(SO_RCVTIMEO), EAGAIN),
        repeatable(libc::SYS_write, Socket(SO_SNDTIMEO), EAGAIN),
        repeatable(libc::SYS_writev, Socket(SO_SNDTIMEO), EAGAIN),
        repeatable(libc::SYS_sendto, Socket(SO_SNDTIMEO), EAGAIN),
        repeatable(libc::SYS_sendmsg, Socket(SO_SNDTIMEO), EAGAIN),
        repeatable(libc::SYS_sendmmsg, Socket(SO_SNDTIMEO), EAGAIN),
        repeatable(libc::SYS_connect, Socket(SO_SNDTIMEO), EINPROGRESS),
        repeatable(libc::SYS_flock, Unknown, 0),
    ]
};

fn find(number: u64) -> Option<Repeatable> {
    let same = |call: &&Repeatable| call.number == number as i64;
    REPEATABLE.iter().find(same).copied()
}

/// Whether a call with these arguments has a timeout that restarts at each stop. Timeouts of
/// sockets are not included: the arguments do not show them.
pub(super) fn has_timeout(number: u64, arguments: &[u64; 6]) -> bool {
    match find(number).map(|call| call.timeout) {
        Some(Timeout::Milliseconds(at)) => arguments[at] as i32 >= 0,
        Some(Timeout::Timespec(at)) => arguments[at] != 0,
        Some(Timeout::Socket(_) | Timeout::Unknown) | None => false,
    }
}

/// Returns the call that the stop interrupted, if it fails with EINTR and can be restarted.
fn interrupted(registers: &libc::user_regs_struct) -> Option<Repeatable> {
    // Not in a call, or in one with a signal handler that has returned.
    let in_call = registers.orig_rax as i64 >= 0;
    let failed = registers.rax as i64 == -i64::from(libc::EINTR);
    find(registers.orig_rax).filter(|_| in_call && failed)
}

fn arguments(registers: &libc::user_regs_struct) -> [u64; 6] {
    let r = registers;
    [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]
}

/// Call site of a thread's system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    number: u64,
    /// The instruction after `syscall`.
    instruction: u64,
    stack: u64,
}

/// A call that was restarted.
#[derive(Debug)]
struct Wait {
    call: Repeatable,
    thread: u32,
    place: Place,
    arguments: [u64; 6],
    /// Time of its first restart.
    since: Instant,
    /// The thread's number of voluntary context switches at the end of the latest stop.
    sleeps: Option<u64>,
}

/// The last restarted call of a process.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<Option<Wait>>);

impl Waits {
    /// Changes the registers of a stopped thread so that the interrupted call continues, or ends if
    /// its timeout has expired. Returns whether they were changed.
    pub(super) fn settle(
        &self,
        thread: u32,
        tracee: &Tracee,
        registers: &mut libc::user_regs_struct,
    ) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.take();
        let wait = match interrupted(registers) {
            Some(_) if !tracee.is_after_syscall(registers.rip) => return false,
            Some(call) => Wait::new(call, thread, registers).since(before),
            // Stopped again before it could start?
            None => match before.filter(|before| before.is_due(thread, registers)) {
                Some(before) => before,
                None => return false,
            },
        };
        let timeout = timeout(wait.call.timeout, thread, tracee, &wait.arguments);
        registers.rip = wait.place.instruction;
        if timeout.is_some_and(|timeout| wait.since.elapsed() >= timeout) {
            registers.rax = wait.call.late as u64;
        } else {
            registers.orig_rax = wait.place.number;
            registers.rax = -RESTART_UNLESS_HANDLED as u64;
            *last = Some(wait);
        }
        true
    }

    /// Records the thread's state just before it continues.
    pub(super) fn leave(&self, thread: u32) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = last.as_mut().filter(|wait| wait.thread == thread) {
            wait.sleeps = sleeps(thread);
        }
    }
}

impl Wait {
    fn new(call: Repeatable, thread: u32, registers: &libc::user_regs_struct) -> Wait {
        Wait {
            call,
            thread,
            place: Place {
                number: registers.orig_rax,
                instruction: registers.rip,
                stack: registers.rsp,
            },
            arguments: arguments(registers),
            since: Instant::now(),
            sleeps: None,
        }
    }

    /// Continues the wait `before`, if it is the same call.
    fn since(mut self, before: Option<Wait>) -> Wait {
        if let Some(before) = before.filter(|before| before.is_still(&self)) {
            self.since = before.since;
        }
        self
    }

    /// Whether a thread is about to make the call.
    fn is_due(&self, thread: u32, registers: &libc::user_regs_struct) -> bool {
        let place = Place {
            number: registers.rax,
            instruction: registers.rip.wrapping_add(2),
            stack: registers.rsp,
        };
        (self.thread, self.place, self.arguments) == (thread, place, arguments(registers))
    }

    /// Whether the call of a stopped thread is the one that was restarted: the thread has slept at
    /// most once in the call, and once in the stop.
    fn is_still(&self, now: &Wait) -> bool {
        let same =
            (self.thread, self.place, self.arguments) == (now.thread, now.place, now.arguments);
        let slept = || sleeps(now.thread)?.checked_sub(self.sleeps?);
        same && slept().is_some_and(|slept| slept <= 2)
    }
}

/// Returns a thread's number of voluntary context switches.
fn sleeps(thread: u32) -> Option<u64> {
    let text = Root::system().read(format!("/proc/{thread}/status")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line?.trim().parse().ok()
}

/// Returns the timeout of the call that a thread is stopped in; `None` if there is none or it is
/// unknown.
fn timeout(place: Timeout, thread: u32, tracee: &Tracee, arguments: &[u64; 6]) -> Option<Duration> {
    match place {
        Timeout::Unknown => None,
        Timeout::Milliseconds(at) => {
            let milliseconds = u64::try_from(arguments[at] as i32).ok()?;
            Some(Duration::from_millis(milliseconds))
        }
        Timeout::Timespec(at) => {
            let address = Some(arguments[at]).filter(|address| *address != 0)?;
            let (seconds, nanoseconds) = (tracee.peek(address)?, tracee.peek(address + 8)?);
            Some(Duration::new(seconds, u32::try_from(nanoseconds).ok()?))
        }
        Timeout::Socket(option) => socket_timeout(thread, arguments[0] as i32, option),
    }
}

/// Returns a socket timeout of another process.
fn socket_timeout(thread: u32, descriptor: i32, option: i32) -> Option<Duration> {
    let process = crate::proc::status(&Root::system(), thread).ok()?.tgid;
    let owned = |descriptor: i64| {
        // SAFETY: the descriptor was just opened and is not owned elsewhere.
        (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
    };
    // SAFETY: no memory is passed.
    let process = owned(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) })?;
    // SAFETY: as above.
    let socket =
        owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) })?;
    // SAFETY: `value` and `length` are valid and have the sizes that are passed.
    let (result, value) = unsafe {
        let mut value: libc::timeval = mem::zeroed();
        let mut length = size_of_val(&value) as libc::socklen_t;
        let place = (&raw mut value).cast();
        let (level, socket) = (libc::SOL_SOCKET, socket.as_raw_fd());
        (
            libc::getsockopt(socket, level, option, place, &raw mut length),
            value,
        )
    };
    let timeout = Duration::new(value.tv_sec as u64, value.tv_usec as u32 * 1000);
    (result == 0 && !timeout.is_zero()).then_some(timeout)
}

#[cfg(test)]
mod tests;
