// SPDX-License-Identifier: MIT OR Apache-2.0
//! One short ptrace stop with an injected madvise.
//!
//! Safety measures:
//! - PTRACE_SEIZE with PTRACE_INTERRUPT: the target sees no signal, and is released in every case,
//!   at the latest when this process ends.
//! - Only one thread stops, for about a millisecond, and runs one system call from the vdso; its
//!   stack is not touched, and all its registers are restored. The thread is the first one that a
//!   stop does not harm.
//! - All its signals are blocked meanwhile: arriving signals stay pending with their data.
//! - Registers are restored in a stop after which the kernel evaluates the interrupted system call,
//!   so that it restarts as if nothing had happened. Calls that the kernel would fail with EINTR
//!   are restarted too.
//! - A thread inside a restartable sequence (rseq) is left alone and retried later.
//! - Processes with seccomp filters other than our own, or with syscall user dispatch, are refused:
//!   the injected call might violate their filter and kill them.

use super::advice::{Advice, RemoteError};
use super::interrupted::Waits;
use super::process::Identity;
use super::tracee::{Stop, Tracee};
use super::{threads, vdso};
use crate::{Root, proc};

/// A process that is stopped to give advice.
#[derive(Debug)]
pub(super) struct Target {
    pid: u32,
    own_child: bool,
    /// `None` on kernels without pidfds (before 5.3).
    identity: Option<Identity>,
    waits: Waits,
}

impl Target {
    pub fn new(pid: u32, own_child: bool, identity: Option<Identity>) -> Target {
        Target {
            pid,
            own_child,
            identity,
            waits: Waits::default(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process is known to have ended, so that its id may be reused.
    fn is_gone(&self) -> bool {
        self.identity.as_ref().is_some_and(Identity::is_gone)
    }

    /// Makes a thread of the target call madvise.
    pub fn advise(&self, range: (u64, u64), advice: Advice) -> Result<(), RemoteError> {
        if self.is_gone() {
            return Err(RemoteError::Gone);
        }
        let thread = threads::choose(self.pid)?;
        match self.advise_in(thread, range, advice) {
            // The other threads are alive.
            Err(RemoteError::Gone) if thread != self.pid && !self.is_gone() => {
                Err(RemoteError::not_yet(libc::EAGAIN))
            }
            result => result,
        }
    }

    fn advise_in(
        &self,
        thread: u32,
        (start, length): (u64, u64),
        advice: Advice,
    ) -> Result<(), RemoteError> {
        let tracee = Tracee::seize(thread, self.own_child && thread == self.pid)?;
        let mut registers = tracee.registers()?;
        if self.waits.settle(thread, &tracee, &mut registers) {
            tracee.set_registers(&registers)?;
        }
        // The id was looked up earlier: verify that the stopped thread belongs to the target.
        if self.is_gone() || !is_thread_of(thread, self.pid) {
            return Err(RemoteError::Gone);
        }
        if tracee.in_restartable_sequence(registers.rip) {
            return Err(RemoteError::not_yet(libc::EAGAIN));
        }
        if tracee.dispatches_system_calls() {
            let reason = "it uses syscall user dispatch".to_owned();
            return Err(RemoteError::NotPermitted(reason));
        }
        let gate = vdso::syscall_instruction(self.pid)
            .ok_or_else(|| RemoteError::NotPermitted("it has no vdso".to_owned()))?;
        let arguments = [start, length, advice.number() as u64];
        let result = call(&tracee, &registers, gate, libc::SYS_madvise, arguments);
        self.waits.leave(thread);
        match result? {
            0 => Ok(()),
            result => Err(RemoteError::from_errno(-result as i32, advice)),
        }
    }
}

fn is_thread_of(thread: u32, pid: u32) -> bool {
    proc::status(&Root::system(), thread).is_ok_and(|status| status.tgid == pid)
}

/// Runs one system call in the stopped target and restores its state.
fn call(
    tracee: &Tracee,
    registers: &libc::user_regs_struct,
    gate: u64,
    number: i64,
    arguments: [u64; 3],
) -> Result<i64, RemoteError> {
    let mask = tracee.signal_mask()?;
    let mut prepared = *registers;
    prepared.rip = gate;
    prepared.rax = number as u64;
    // Clear orig_rax, so that no system call is restarted before ours.
    prepared.orig_rax = u64::MAX;
    [prepared.rdi, prepared.rsi, prepared.rdx] = arguments;
    tracee.set_signal_mask(u64::MAX)?;
    let result = tracee
        .set_registers(&prepared)
        .and_then(|()| through_the_gate(tracee));
    if matches!(result, Err(RemoteError::Gone)) {
        return result;
    }
    tracee.set_registers(registers)?;
    tracee.set_signal_mask(mask)?;
    result
}

/// Continues from the prepared stop over the system call's entry and exit to a stop in which
/// registers can be restored.
fn through_the_gate(tracee: &Tracee) -> Result<i64, RemoteError> {
    match tracee.resume_to_system_call()? {
        Stop::SystemCall => {}
        // The target was stopped (Ctrl-Z) before it reached the call.
        Stop::Event(_) => return Err(RemoteError::not_yet(libc::EAGAIN)),
        Stop::Signal(signal) => {
            let reason = format!("signal {signal} arrived instead of the system call");
            return Err(RemoteError::NotPermitted(reason));
        }
    }
    tracee.resume_to_system_call()?;
    let result = tracee.registers()?.rax as i64;
    tracee.interrupt()?;
    tracee.resume()?;
    Ok(result)
}
