// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread held by ptrace: typed wrappers for ptrace(2) and waitid(2).

use std::io;
use std::mem;

use libc::{c_long, c_uint, c_void};

use super::advice::RemoteError;
use super::signals::Undisturbed;
use super::vdso;

// Requests and events that libc lacks on some targets.
const GET_SIGMASK: c_uint = 0x420a;
const SET_SIGMASK: c_uint = 0x420b;
const GET_RSEQ: c_uint = 0x420f;
const GET_DISPATCH: c_uint = 0x4211;
const EVENT_STOP: i32 = 128;
const SYSTEM_CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// Reason for a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Our interrupt (SIGTRAP), or a stop signal from elsewhere.
    Event(i32),
    /// At the entry to or exit from a system call.
    SystemCall,
    /// A signal is about to be delivered.
    Signal(i32),
}

/// A seized and stopped thread; it continues when dropped.
pub(super) struct Tracee {
    thread: i32,
    leave_status: bool,
    _undisturbed: Undisturbed,
}

impl Tracee {
    /// Stops a thread and waits until it has stopped. `leave_status`: it is the main thread of a
    /// child, and its exit status is left for the waiter of the child.
    pub(super) fn seize(thread: u32, leave_status: bool) -> Result<Tracee, RemoteError> {
        let tracee = Tracee {
            thread: thread as i32,
            leave_status,
            _undisturbed: Undisturbed::new(),
        };
        let options = libc::PTRACE_O_TRACESYSGOOD as usize;
        tracee.request(libc::PTRACE_SEIZE, 0, options)?;
        tracee.interrupt()?;
        loop {
            match tracee.wait()? {
                Stop::Event(libc::SIGTRAP) => return Ok(tracee),
                // Stopped by job control: it must not continue.
                Stop::Event(_) => return Err(RemoteError::not_yet(libc::EAGAIN)),
                Stop::SystemCall => tracee.request(libc::PTRACE_CONT, 0, 0)?,
                // Its own signal is delivered first.
                Stop::Signal(signal) => tracee.request(libc::PTRACE_CONT, 0, signal as usize)?,
            };
        }
    }

    pub(super) fn interrupt(&self) -> Result<(), RemoteError> {
        self.request(libc::PTRACE_INTERRUPT, 0, 0)
    }

    /// Continues to the next stop.
    pub(super) fn resume(&self) -> Result<Stop, RemoteError> {
        self.request(libc::PTRACE_CONT, 0, 0)?;
        self.wait()
    }

    /// Continues to the next entry to or exit from a system call, or another stop.
    pub(super) fn resume_to_system_call(&self) -> Result<Stop, RemoteError> {
        self.request(libc::PTRACE_SYSCALL, 0, 0)?;
        self.wait()
    }

    pub(super) fn registers(&self) -> Result<libc::user_regs_struct, RemoteError> {
        // SAFETY: all bit patterns are valid registers.
        let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, (&raw mut registers) as usize)?;
        Ok(registers)
    }

    pub(super) fn set_registers(
        &self,
        registers: &libc::user_regs_struct,
    ) -> Result<(), RemoteError> {
        let place: *const libc::user_regs_struct = registers;
        self.request(libc::PTRACE_SETREGS, 0, place as usize)
    }

    pub(super) fn signal_mask(&self) -> Result<u64, RemoteError> {
        let mut mask = 0u64;
        self.request(GET_SIGMASK, size_of::<u64>(), (&raw mut mask) as usize)?;
        Ok(mask)
    }

    pub(super) fn set_signal_mask(&self, mask: u64) -> Result<(), RemoteError> {
        self.request(SET_SIGMASK, size_of::<u64>(), (&raw const mask) as usize)
    }

    /// Whether the thread is inside a restartable sequence at `address`: any other instruction
    /// pointer, even for a short time, would make the kernel drop the sequence.
    pub(super) fn in_restartable_sequence(&self, address: u64) -> bool {
        /// Result of PTRACE_GET_RSEQ_CONFIGURATION.
        #[repr(C)]
        #[derive(Default)]
        struct Configuration {
            area: u64,
            size: u32,
            signature: u32,
            flags: u32,
            _pad: u32,
        }
        let mut found = Configuration::default();
        let place = (&raw mut found) as usize;
        let asked = self.request(GET_RSEQ, size_of::<Configuration>(), place);
        if asked.is_err() || found.area == 0 {
            return false;
        }
        // struct rseq has the sequence's address at 8; struct rseq_cs has its start at 8 and its
        // length at 16.
        let Some(sequence) = self.peek(found.area + 8).filter(|sequence| *sequence != 0) else {
            return false;
        };
        match (self.peek(sequence + 8), self.peek(sequence + 16)) {
            (Some(start), Some(length)) => address.wrapping_sub(start) < length,
            _ => true,
        }
    }

    /// Whether the thread uses syscall user dispatch (as Wine does).
    pub(super) fn dispatches_system_calls(&self) -> bool {
        // mode, selector, offset, length
        let mut found = [0u64; 4];
        let place = found.as_mut_ptr() as usize;
        let asked = self.request(GET_DISPATCH, size_of_val(&found), place);
        asked.is_ok() && found[0] != 0
    }

    /// Whether the instruction before `address` is a 64-bit `syscall`.
    pub(super) fn is_after_syscall(&self, address: u64) -> bool {
        let code = self.peek(address.wrapping_sub(2));
        code.is_some_and(|code| code.to_le_bytes().starts_with(&vdso::SYSCALL))
    }

    /// Reads a word of the target's memory.
    pub(super) fn peek(&self, address: u64) -> Option<u64> {
        // The raw system call stores the word at `data`.
        let mut word = 0u64;
        self.raw(
            libc::PTRACE_PEEKDATA,
            address as usize,
            (&raw mut word) as usize,
        )
        .is_ok()
        .then_some(word)
    }

    fn request(
        &self,
        request: impl Into<c_long>,
        address: usize,
        data: usize,
    ) -> Result<(), RemoteError> {
        self.raw(request, address, data)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ESRCH) => RemoteError::Gone,
                _ => RemoteError::NotPermitted(format!("ptrace: {error}")),
            })
    }

    /// The C libraries disagree on the sign of the requests' type, hence the conversion.
    fn raw(&self, request: impl Into<c_long>, address: usize, data: usize) -> io::Result<()> {
        // SAFETY: each caller passes what its request takes: a number, or the address of an object
        // of the right size that outlives the call.
        let result = unsafe {
            let (address, data) = (address as *mut c_void, data as *mut c_void);
            libc::syscall(libc::SYS_ptrace, request.into(), self.thread, address, data)
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// Waits for the next stop.
    fn wait(&self) -> Result<Stop, RemoteError> {
        let ended = self.wait_id(libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT)?;
        if !matches!(ended.si_code, libc::CLD_TRAPPED | libc::CLD_STOPPED) {
            if !self.leave_status {
                // No other process can reap it before its tracer does.
                self.wait_id(libc::WEXITED)?;
            }
            return Err(RemoteError::Gone);
        }
        let info = self.wait_id(libc::WSTOPPED)?;
        // SAFETY: waitid fills in the fields of a child's event.
        let status = unsafe { info.si_status() };
        Ok(match (status >> 8, status & 0xff) {
            (EVENT_STOP, signal) => Stop::Event(signal),
            (0, SYSTEM_CALL_STOP) => Stop::SystemCall,
            (_, signal) => Stop::Signal(signal),
        })
    }

    fn wait_id(&self, options: i32) -> Result<libc::siginfo_t, RemoteError> {
        loop {
            // SAFETY: `info` is valid for the result.
            let (result, info) = unsafe {
                let mut info: libc::siginfo_t = mem::zeroed();
                let thread = self.thread as libc::id_t;
                let options = options | libc::__WALL;
                (
                    libc::waitid(libc::P_PID, thread, &raw mut info, options),
                    info,
                )
            };
            if result == 0 {
                return Ok(info);
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return Err(RemoteError::Gone);
            }
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        let _ = self.raw(libc::PTRACE_DETACH, 0, 0);
    }
}
