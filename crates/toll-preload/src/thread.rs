// SPDX-License-Identifier: MIT OR Apache-2.0
//! Per-thread state, and the ordinal that a thread gets when it is created.
//!
//! The state is in the static TLS block (initial-exec), reached by two instructions: no call, no
//! allocation, safe in a signal handler and before the C library is initialised. Threads are
//! numbered by their creator, not by their first allocation: this makes the number stable between
//! runs.

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU32, Ordering::*};

use crate::os;

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
            let ordinal = if first { 0 } else { next_ordinal() };
            set_ordinal(ordinal);
            ordinal
        }
        known => known - 1,
    }
}

/// Returns the ordinal for a thread that is being created.
pub fn next_ordinal() -> u32 {
    NEXT.fetch_add(1, Relaxed)
}

/// Sets the creation ordinal of the calling thread.
pub fn set_ordinal(ordinal: u32) {
    current().ordinal.store(ordinal.wrapping_add(1), Relaxed);
}

/// Marks the calling thread as the main thread.
pub fn is_first() {
    set_ordinal(0);
}

/// Runs in the child of a fork: its only thread is the main thread.
pub fn after_fork() {
    is_first();
    NEXT.store(1, Relaxed);
}
