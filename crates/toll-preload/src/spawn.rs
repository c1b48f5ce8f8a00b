// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts threads with the ordinals that their creators give them.

use core::arch::global_asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use crate::{real, thread};

/// A thread that is being started: its start routine and ordinal.
struct Start {
    taken: AtomicU32,
    ordinal: AtomicU32,
    routine: AtomicUsize,
    argument: AtomicUsize,
}

/// Threads between pthread_create and their first instruction.
static STARTS: [Start; 256] = [const {
    Start {
        taken: AtomicU32::new(0),
        ordinal: AtomicU32::new(0),
        routine: AtomicUsize::new(0),
        argument: AtomicUsize::new(0),
    }
}; 256];

// The new thread's first function: fetches its start record from the table and jumps to the
// program's own start routine, so that no frame of ours stays on its stack.
global_asm!(
    ".pushsection .text.toll_preload_thread_start,\"ax\",@progbits",
    ".globl toll_preload_thread_start",
    ".hidden toll_preload_thread_start",
    ".type toll_preload_thread_start,@function",
    "toll_preload_thread_start:",
    ".cfi_startproc",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {begin}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "mov rdi, rdx",
    "jmp rax",
    ".cfi_endproc",
    ".size toll_preload_thread_start, . - toll_preload_thread_start",
    ".popsection",
    begin = sym begin,
);

unsafe extern "C" {
    fn toll_preload_thread_start(start: *mut c_void) -> *mut c_void;
}

/// What the new thread runs; returned in two registers.
#[repr(C)]
struct Routine {
    routine: usize,
    argument: usize,
}

/// Runs first in a new thread.
extern "C" fn begin(start: &'static Start) -> Routine {
    thread::set_ordinal(start.ordinal.load(Relaxed));
    let routine = Routine {
        routine: start.routine.load(Relaxed),
        argument: start.argument.load(Relaxed),
    };
    start.taken.store(0, Release);
    routine
}

/// Creates a thread with a known ordinal.
///
/// # Safety
/// As `pthread_create`.
pub unsafe fn create(
    thread: *mut c_void,
    attributes: *const c_void,
    routine: usize,
    argument: *mut c_void,
) -> c_int {
    let free = |start: &&Start| start.taken.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
    let Some(start) = STARTS.iter().find(free) else {
        return unsafe { real::pthread_create(thread, attributes, routine, argument) };
    };
    start.ordinal.store(thread::next_ordinal(), Relaxed);
    start.routine.store(routine, Relaxed);
    start.argument.store(argument as usize, Relaxed);
    let first = toll_preload_thread_start as *const () as usize;
    let handed = &raw const *start as *mut c_void;
    // SAFETY: the entry stays reserved until the new thread has read it.
    let result = unsafe { real::pthread_create(thread, attributes, first, handed) };
    if result != 0 {
        start.taken.store(0, Release);
    }
    result
}
