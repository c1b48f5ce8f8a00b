// SPDX-License-Identifier: MIT OR Apache-2.0
//! A running target: waits for its end, forwards signals, and stops it.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};

use super::huge::{HugeSampler, Processes, Sampled, Sampling};
use crate::signals;

/// How a target ended, and the resources that it and its waited-for children used.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub status: ExitStatus,
    /// From before the fork to the end.
    pub wall: Duration,
    pub user: Duration,
    pub sys: Duration,
    pub minor_faults: u64,
    pub major_faults: u64,
    /// Peak of the largest process, bytes.
    pub max_rss: u64,
    /// Huge-page-backed anonymous memory, if [`Launch::sample_huge`] was set.
    pub huge: Sampled,
    /// The signal that asked tollfree to end meanwhile, if any.
    pub interrupted: Option<i32>,
}

impl Outcome {
    /// CPU time of all threads.
    pub fn cpu(&self) -> Duration {
        self.user + self.sys
    }
}

/// A running target. It is killed if dropped before its end.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    group: bool,
    pidfd: Option<OwnedFd>,
    begun: Instant,
    huge: Option<HugeSampler<Processes>>,
    reaped: bool,
    _guard: signals::Guard,
}

impl Child {
    /// A target that was started at `begun`, as the leader of its group if `group` is set. The
    /// guard records signals for it.
    pub(super) fn new(
        pid: u32,
        group: bool,
        begun: Instant,
        sampling: Sampling,
        guard: signals::Guard,
    ) -> Child {
        Child {
            pid,
            group,
            pidfd: pidfd(pid),
            begun,
            huge: HugeSampler::new(Processes::of(pid), sampling),
            reaped: false,
            _guard: guard,
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for the end. Calls `tick` at once, and again each time that the duration it returned
    /// has passed. Forwards signals meanwhile.
    pub fn wait(&mut self, mut tick: impl FnMut() -> Duration) -> Result<Outcome> {
        let mut next = Instant::now();
        loop {
            if let Some(outcome) = self.try_wait()? {
                return Ok(outcome);
            }
            let now = Instant::now();
            if now >= next {
                let after = tick().min(LONGEST_TICK);
                next = Instant::now() + after;
            }
            self.pause(next.saturating_duration_since(Instant::now()))?;
        }
    }

    /// Waits for at most `limit`. Returns `None` if the target is still running.
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<Outcome>> {
        let end = Instant::now() + limit;
        loop {
            if let Some(outcome) = self.try_wait()? {
                return Ok(Some(outcome));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.pause(left)?;
        }
    }

    /// Asks the target to end, and kills it if it is still running after `grace`.
    pub fn stop(&mut self, grace: Duration) -> Result<Outcome> {
        self.signal(libc::SIGTERM);
        self.signal(libc::SIGCONT);
        if let Some(outcome) = self.wait_for(grace)? {
            return Ok(outcome);
        }
        self.signal(libc::SIGKILL);
        self.wait(|| LONGEST_TICK)
    }

    /// Sends a signal to the target, or to its group if it has its own.
    pub fn signal(&self, signal: i32) {
        if !self.reaped {
            send(self.pid, self.group, signal);
        }
    }

    /// Checks whether the target has ended, stops with it if it stopped, and forwards signals.
    pub fn try_wait(&mut self) -> Result<Option<Outcome>> {
        loop {
            for note in signals::take() {
                let by_terminal = self.group && note.signal != libc::SIGCHLD;
                if note.is_for_target() || by_terminal {
                    self.signal(note.signal);
                }
            }
            let Some((status, usage)) = wait4(self.pid)? else {
                return Ok(None);
            };
            if let Some(signal) = status.stopped_signal() {
                stop_along(signal);
                continue;
            }
            self.reaped = true;
            return Ok(Some(self.outcome(status, &usage)));
        }
    }

    /// Sleeps until the target ends or stops, a signal arrives, or `limit` has passed.
    fn pause(&mut self, mut limit: Duration) -> Result<()> {
        if let Some(huge) = &mut self.huge {
            limit = limit.min(huge.tick());
        }
        let signals = signals::readable()?;
        let mut fds = vec![PollFd::new(&signals, PollFlags::IN)];
        if let Some(pidfd) = &self.pidfd {
            fds.push(PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN));
        }
        let limit = rustix::time::Timespec::try_from(limit).ok();
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("poll"),
        }
    }

    fn outcome(&self, status: ExitStatus, usage: &libc::rusage) -> Outcome {
        let time = |t: libc::timeval| {
            Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
        };
        let huge = self.huge.as_ref();
        let huge = huge.map(HugeSampler::sampled).unwrap_or_default();
        Outcome {
            status,
            wall: self.begun.elapsed(),
            user: time(usage.ru_utime),
            sys: time(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            max_rss: usage.ru_maxrss as u64 * 1024,
            huge,
            interrupted: signals::interrupted(),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(libc::SIGKILL);
            let _ = self.wait(|| LONGEST_TICK);
        }
    }
}

/// Upper bound of one wait.
const LONGEST_TICK: Duration = Duration::from_secs(3600);

/// Handles a stopped target: a stop from the terminal also stops tollfree. The sender of a SIGSTOP
/// (a debugger, a throttle) continues the target itself.
fn stop_along(signal: i32) {
    if [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal) {
        signals::default_action(signal);
    }
}

fn send(pid: u32, group: bool, signal: i32) {
    let pid = pid as libc::pid_t;
    // SAFETY: kill takes no pointer; the child has not been reaped, so the id is its own.
    unsafe { libc::kill(if group { -pid } else { pid }, signal) };
}

/// The child's new state, if it changed.
fn wait4(pid: u32) -> Result<Option<(ExitStatus, libc::rusage)>> {
    let mut status = 0;
    // SAFETY: both out-pointers are valid, and a zeroed rusage is too.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let flags = libc::WNOHANG | libc::WUNTRACED;
        match libc::wait4(pid as libc::pid_t, &mut status, flags, &mut usage) {
            0 => Ok(None),
            -1 => Err(io::Error::last_os_error()).context("cannot wait for the target"),
            _ => Ok(Some((ExitStatus::from_raw(status), usage))),
        }
    }
}

/// A descriptor that becomes readable at the child's end; without it, SIGCHLD signals the end.
fn pidfd(pid: u32) -> Option<OwnedFd> {
    // SAFETY: pidfd_open returns a new descriptor (CLOEXEC) or -1.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd as i32))
    }
}
