// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shared object that acts inside a target process (`LD_PRELOAD`).
//!
//! It wraps the calls that make large blocks of memory, names each block of at
//! least 1 MiB by where it was asked for, advises the planned parts of it
//! before their first touch, and logs the event if somebody records. It adds
//! `madvise`, and maps copies in memory in the place of files if it is told of such:
//! what the program computes stays as it was.
//!
//! The rules of the house in here: no allocation, no lock, no thread, no panic;
//! every table has a fixed size and a full one only means that less is known;
//! a broken or missing file means that nothing is done, silently; `errno` stays.
//!
//! | module | does |
//! |---|---|
//! | [`hooks`] | the exported functions: a size test, then on to the real one |
//! | [`real`] | the functions that the hooks stand in front of |
//! | [`act`] | what happens when a large block is born, moves or dies |
//! | [`plan`] | the action file: which rule an event matches |
//! | [`regions`] | which regions of a block the planned intervals reach (pure) |
//! | [`advise`] | advice for the ranges of a block, within the map budget |
//! | [`hugetlb`] | what to unmap of a morsel whose pages are larger than the program thinks |
//! | [`budget`] | how many mappings may still be split |
//! | [`live`] | the large blocks that are alive |
//! | [`ordinals`] | how many events a site has had |
//! | [`log`] | the event file |
//! | [`morsels`] | read-only mappings of files that are served from a copy in memory |
//! | [`remap`] | mremap of a mapping that advice has split |
//! | [`stack`] | the call stack outside the allocator |
//! | [`modules`] | which module a code address lies in |
//! | [`thread`] | per-thread state and the thread's creation ordinal |
//! | [`os`] | system calls that do not pass through the hooks |
#![no_std]

// Only for the panic handler and the unwinder that the crate is linked with.
extern crate std as _;

mod act;
mod advise;
mod budget;
mod hooks;
mod hugetlb;
mod live;
mod log;
mod modules;
mod morsels;
mod neighbours;
mod ordinals;
mod os;
mod plan;
mod real;
mod regions;
mod remap;
mod stack;
mod thread;

use core::ffi::{c_char, c_int};

/// Runs when the library is loaded, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = at_load;

extern "C" fn at_load(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    real::resolve();
    // The dynamic linker runs constructors in the program's first thread.
    thread::is_first();
    act::start();
    // Also where nothing is recorded: threads of a child have the numbers of the recording.
    if !act::is_off() {
        // SAFETY: registers two functions of this library, which is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(act::after_fork)) };
    }
}
