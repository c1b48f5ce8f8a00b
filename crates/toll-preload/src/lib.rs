// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shared object that acts inside a target process (`LD_PRELOAD`).
//!
//! It wraps the calls that create large blocks of memory, names each block of at least 1 MiB by its
//! allocation site, advises the planned parts of it before their first touch, and logs the event if
//! a recording is active. It adds `madvise` calls, and maps copies in memory in place of files if
//! configured: the program's results do not change.
//!
//! Rules of this crate: no allocation, no lock, no thread, no panic; every table has a fixed size,
//! and a full one only loses information; a damaged or missing file silently disables the feature;
//! `errno` is preserved.
//!
//! | module | does |
//! |---|---|
//! | [`hooks`] | the exported functions: a size comparison, then the real function |
//! | [`real`] | the real functions behind the hooks |
//! | [`spawn`] | starts threads with their creation ordinals |
//! | [`start`] | the start of the library in a process |
//! | [`birth`] | handles the birth of a large block |
//! | [`resize`] | handles its move |
//! | [`death`] | handles its death |
//! | [`plan`] | the action file: finds the rule for an event |
//! | [`regions`] | selects the regions of a block covered by planned intervals (pure) |
//! | [`advise`] | advises the ranges of a block, within the map budget |
//! | [`hugetlb`] | unmaps morsels with pages larger than the program expects |
//! | [`budget`] | limits the number of mapping splits |
//! | [`live`] | table of live large blocks |
//! | [`ordinals`] | counts the events of each site |
//! | [`log`] | the event file |
//! | [`morsels`] | read-only mappings of files that are served from a copy in memory |
//! | [`remap`] | mremap of a mapping that advice has split |
//! | [`shared`] | shared memory: where huge pages fit, and collapsed |
//! | [`stack`] | call stack outside the allocator |
//! | [`modules`] | maps a code address to its module |
//! | [`neighbours`] | small adjacent mappings that fill regions together |
//! | [`text`] | program text in huge pages |
//! | [`thread`] | per-thread state and creation ordinals |
//! | [`os`] | system calls that bypass the hooks |
//! | [`hash`], [`path`] | hashes and paths of modules |
#![no_std]

// Required only by the panic handler and the linked unwinder.
extern crate std as _;

mod advise;
mod birth;
mod budget;
mod death;
mod hash;
mod hooks;
mod hugetlb;
mod live;
mod log;
mod modules;
mod morsels;
mod neighbours;
mod ordinals;
mod os;
mod path;
mod plan;
mod real;
mod regions;
mod remap;
mod resize;
mod shared;
mod spawn;
mod stack;
mod start;
mod text;
mod thread;

use core::ffi::{c_char, c_int};

/// Runs when the library is loaded, before the program's own constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = at_load;

extern "C" fn at_load(_: c_int, _: *const *const c_char, _: *const *const c_char) {
    real::resolve();
    // The dynamic linker runs constructors in the program's main thread.
    thread::is_first();
    start::start();
    // Also without a recording: threads of a child must have the same numbers as in the recording.
    if !start::is_off() {
        // SAFETY: registers two functions of this library, which is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(start::after_fork)) };
    }
}
