// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls of a program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Returns the system calls of a program from its first instruction to its end, by number, and its
/// page faults. Only the main thread is traced.
#[allow(clippy::zombie_processes)] // wait4 waits
pub fn system_calls(mut command: Command) -> (Vec<i64>, i64) {
    // SAFETY: the child only requests to be traced before it runs the program.
    let command = unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    };
    let pid = command.spawn().expect("a traced program").id() as libc::pid_t;
    let mut calls = Vec::new();
    let mut enters = false;
    loop {
        // SAFETY: the child is ours; the result pointers are valid.
        let (status, usage) = unsafe {
            let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
            assert_eq!(libc::wait4(pid, &mut status, 0, &mut usage), pid);
            (status, usage)
        };
        if !libc::WIFSTOPPED(status) {
            assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
            return (calls, usage.ru_minflt);
        }
        let mut signal = libc::WSTOPSIG(status);
        if signal == libc::SIGTRAP | 0x80 {
            enters = !enters;
            if enters {
                calls.push(call_number(pid));
            }
            signal = 0;
        } else if signal == libc::SIGTRAP {
            // The stop after exec.
            let options = libc::PTRACE_O_TRACESYSGOOD;
            // SAFETY: the child is stopped.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options) };
            signal = 0;
        }
        // SAFETY: the child is stopped.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, signal) };
    }
}

/// Returns the number of the system call that a stopped process is in.
fn call_number(pid: libc::pid_t) -> i64 {
    // SAFETY: zeros are a valid result to overwrite; the child is stopped.
    let registers = unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers);
        registers
    };
    registers.orig_rax as i64
}
