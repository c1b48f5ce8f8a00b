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

use std::mem;

use super::gate::{self, Call, Gate};
use super::tracee::{Stop, Tracee};
use super::{Advice, RemoteError, RemoteProcess, threads, vdso};
use crate::Root;
use crate::proc::{self, Status};

/// Number of CAP_SYS_PTRACE.
const CAP_SYS_PTRACE: u32 = 19;

/// Returns why a process may not be stopped; `None` if it may.
pub(super) fn forbidden(pid: u32, status: &Status, own_child: bool) -> Option<String> {
    let root = Root::system();
    let own = gate::own_status();
    let yama = root
        .number("/proc/sys/kernel/yama/ptrace_scope")
        .unwrap_or(0);
    if proc::is_32_bit(&root, pid).unwrap_or(false) {
        return Some("it is a 32-bit program".to_owned());
    }
    if gate::gate(Call::Ptrace) != Gate::Open {
        return Some("a seccomp filter forbids it".to_owned());
    }
    let relation = if own_child {
        Relation::Child
    } else if shares_our_container(&root, pid) {
        Relation::Neighbour
    } else {
        Relation::Stranger
    };
    objection(status, &own, relation, yama)
}

/// Relation of a process to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    /// Started by this process.
    Child,
    /// In our container: it is confined in the same way as we are.
    Neighbour,
    Stranger,
}

/// Whether a process sees the same processes and files as we do.
fn shares_our_container(root: &Root, pid: u32) -> bool {
    ["pid", "mnt"].iter().all(|kind| {
        let space = |of: &str| std::fs::read_link(root.path(format!("/proc/{of}/ns/{kind}")));
        match (space("self"), space(&pid.to_string())) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => false,
        }
    })
}

/// Whether a process has seccomp filters other than ours: those that we had when we started it, or
/// those of the shared container. Ours permit madvise, since we call it.
fn has_foreign_filter(target: &Status, own: &Status, relation: Relation) -> bool {
    if target.seccomp == 0 {
        return false;
    }
    let same_number = target.seccomp_filters.is_some_and(|filters| filters > 0)
        && target.seccomp_filters == own.seccomp_filters;
    let ours = target.seccomp == own.seccomp && same_number;
    !ours || relation == Relation::Stranger
}

/// The decision without the system queries.
fn objection(target: &Status, own: &Status, relation: Relation, yama: u64) -> Option<String> {
    let privileged = own.can(CAP_SYS_PTRACE);
    if target.has_no_memory() {
        Some("it is a kernel thread or has ended".to_owned())
    } else if target.tracer != 0 {
        Some(format!(
            "process {} already traces it (a debugger?)",
            target.tracer
        ))
    } else if has_foreign_filter(target, own, relation) {
        Some(
            "it has a seccomp filter of its own, which might kill it for an unexpected system call"
                .to_owned(),
        )
    } else if yama >= 3 {
        Some("kernel.yama.ptrace_scope forbids it for all processes".to_owned())
    } else if privileged {
        None
    } else if target.changed_identity() {
        Some("it is a setuid or setgid program".to_owned())
    } else if target.uid[0] != own.uid[1] {
        Some(format!("it belongs to another user (id {})", target.uid[0]))
    } else if yama == 2 || (yama == 1 && relation != Relation::Child) {
        Some(format!("kernel.yama.ptrace_scope = {yama} forbids it"))
    } else {
        None
    }
}

/// Makes a thread of the target call madvise.
pub(super) fn advise(
    remote: &RemoteProcess,
    range: (u64, u64),
    advice: Advice,
) -> Result<(), RemoteError> {
    if remote.is_gone() {
        return Err(RemoteError::Gone);
    }
    let thread = threads::choose(remote.pid)?;
    match advise_in(thread, remote, range, advice) {
        // The other threads are alive.
        Err(RemoteError::Gone) if thread != remote.pid && !remote.is_gone() => {
            Err(RemoteError::not_yet(libc::EAGAIN))
        }
        result => result,
    }
}

fn advise_in(
    thread: u32,
    remote: &RemoteProcess,
    (start, length): (u64, u64),
    advice: Advice,
) -> Result<(), RemoteError> {
    let (pid, waits) = (remote.pid, &remote.waits);
    let tracee = Tracee::seize(thread, remote.own_child && thread == pid)?;
    let mut registers = tracee.registers()?;
    if waits.settle(thread, &tracee, &mut registers) {
        tracee.set_registers(&registers)?;
    }
    // The id was looked up earlier: verify that the stopped thread belongs to the target.
    if remote.is_gone() || !is_thread_of(thread, pid) {
        return Err(RemoteError::Gone);
    }
    if tracee.in_restartable_sequence(registers.rip) {
        return Err(RemoteError::not_yet(libc::EAGAIN));
    }
    if tracee.dispatches_system_calls() {
        let reason = "it uses syscall user dispatch".to_owned();
        return Err(RemoteError::NotPermitted(reason));
    }
    let gate = vdso::syscall_instruction(pid)
        .ok_or_else(|| RemoteError::NotPermitted("it has no vdso".to_owned()))?;
    let arguments = [start, length, advice.number() as u64];
    let result = call(&tracee, &registers, gate, libc::SYS_madvise, arguments);
    waits.leave(thread);
    match result? {
        0 => Ok(()),
        result => Err(RemoteError::from_errno(-result as i32, advice)),
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

/// Blocks all signals in this thread while it holds a stopped process, so that Ctrl-C cannot end
/// tollfree meanwhile.
pub(super) struct Undisturbed(libc::sigset_t);

impl Undisturbed {
    pub(super) fn new() -> Undisturbed {
        // SAFETY: both sets are valid, and sigfillset initialises the first.
        unsafe {
            let mut all: libc::sigset_t = mem::zeroed();
            let mut before: libc::sigset_t = mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            Undisturbed(before)
        }
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        // SAFETY: the set is the one that pthread_sigmask returned.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests;
