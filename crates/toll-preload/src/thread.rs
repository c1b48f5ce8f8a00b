// SPDX-License-Identifier: MIT OR Apache-2.0
//! Per-thread state, and the ordinal that a thread gets when it is created.
//!
//! The state is in the static TLS block (initial-exec), reached by two instructions: no call, no
//! allocation, safe in a signal handler and before the C library is initialised. Threads are
//! numbered by their creator, not by their first allocation: this makes the number stable between
//! runs.

use core::arch::{asm, global_asm};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use crate::{os, real};

/// The state of one thread; initially all zeros.
#[repr(C)]
pub struct Thread {
    /// Creation ordinal plus one; 0: unknown.
    ordinal: AtomicU32,
    /// Non-zero while the thread is inside this library.
    busy: AtomicU32,
    /// Non-zero while the thread looks up the real functions.
    pub resolving: AtomicU32,
}

global_asm!(
    ".pushsection .tbss.toll_preload_thread,\"awT\",@nobits",
    ".balign 16",
    ".globl toll_preload_thread",
    ".hidden toll_preload_thread",
    ".type toll_preload_thread,@object",
    ".size toll_preload_thread,16",
    "toll_preload_thread:",
    ".zero 16",
    ".popsection",
);

/// Returns the state of the calling thread.
pub fn current() -> &'static Thread {
    let state: *const Thread;
    // SAFETY: the System V ABI stores the thread pointer at fs:0; the variable is 16 zeroed bytes
    // of this thread, and all its fields are atomic.
    unsafe {
        asm!(
            "mov {state}, qword ptr fs:[0]",
            "add {state}, qword ptr [rip + toll_preload_thread@GOTTPOFF]",
            state = out(reg) state,
            options(nostack, pure, readonly),
        );
        &*state
    }
}

/// Held while the thread is inside this library.
pub struct Inside(());

/// Enters the library, unless the thread is already in it (a signal handler, or an allocation of
/// the unwinder).
pub fn enter() -> Option<Inside> {
    let first = current().busy.swap(1, Relaxed) == 0;
    first.then_some(Inside(()))
}

impl Drop for Inside {
    fn drop(&mut self) {
        current().busy.store(0, Relaxed);
    }
}

/// Ordinal of the next thread; the main thread is 0.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// Returns the creation ordinal of the calling thread.
pub fn ordinal() -> u32 {
    let thread = current();
    match thread.ordinal.load(Relaxed) {
        0 => {
            // The main thread, or one created by a bare clone().
            // SAFETY: gettid cannot fail.
            let first = unsafe { libc::syscall(libc::SYS_gettid) } as u32 == os::process_id();
            let ordinal = if first { 0 } else { NEXT.fetch_add(1, Relaxed) };
            thread.ordinal.store(ordinal.wrapping_add(1), Relaxed);
            ordinal
        }
        known => known - 1,
    }
}

/// Marks the calling thread as the main thread.
pub fn is_first() {
    current().ordinal.store(1, Relaxed);
}

/// Runs in the child of a fork: its only thread is the main thread.
pub fn after_fork() {
    is_first();
    NEXT.store(1, Relaxed);
}

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
    let ordinal = start.ordinal.load(Relaxed);
    current().ordinal.store(ordinal.wrapping_add(1), Relaxed);
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
    start.ordinal.store(NEXT.fetch_add(1, Relaxed), Relaxed);
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
