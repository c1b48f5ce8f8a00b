// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start of the library in a process, and of a fork.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::*};

use crate::modules::{self, Owner};
use crate::os::{self, Errno, File};
use crate::{budget, log, morsels, neighbours, plan, real, shared, stack, text, thread};

/// Minimum length for which the hooks do more than forward the call: first the minimum length of an
/// event, then the minimum that plan and log need, or never.
static THRESHOLD: AtomicUsize = AtomicUsize::new(toll_wire::MIN_EVENT);

const UNSTARTED: u8 = 0;
const STARTING: u8 = 1;
const STARTED: u8 = 2;
static STATE: AtomicU8 = AtomicU8::new(UNSTARTED);

/// Whether blocks have glibc's headers.
static GLIBC: AtomicBool = AtomicBool::new(false);

/// Whether stale advice makes other memory huge: THP is `madvise`.
static HINTS_MATTER: AtomicBool = AtomicBool::new(false);

/// Process id of the process that was started last: identifies a fork's parent.
static PROCESS: AtomicU32 = AtomicU32::new(0);

#[inline(always)]
pub fn threshold() -> usize {
    THRESHOLD.load(Relaxed)
}

/// Whether plan and log need no event, so that threads need no numbers either.
pub fn is_off() -> bool {
    threshold() == usize::MAX
}

/// Loads plan and log, once. Called when the library is loaded, or by the first large block if a
/// constructor runs earlier.
pub fn start() {
    if !os::has_environment() {
        return;
    }
    let first = STATE.compare_exchange(UNSTARTED, STARTING, Acquire, Relaxed);
    if first.is_err() {
        return;
    }
    let _errno = Errno::save();
    plan::load();
    morsels::load();
    log::open();
    let plan = plan::get();
    if plan.is_empty() && !log::is_on() {
        THRESHOLD.store(usize::MAX, Relaxed);
        return;
    }
    shared::start(plan);
    modules::start();
    if !plan.is_empty() {
        budget::start();
    }
    if plan.has_rules() {
        start_hints();
    }
    if plan.has_texts() {
        text::start(plan);
    }
    let allocator = modules::find(real::malloc_address());
    GLIBC.store(
        allocator.is_some_and(|module| module.owner == Owner::CLibrary),
        Relaxed,
    );
    // First-use system calls are made now: they may be forbidden later.
    thread::ordinal();
    if log::is_on() {
        PROCESS.store(os::process_id(), Relaxed);
    }
    if log::is_on() || plan.has_rules() {
        stack::walk(|_| true);
    }
    STATE.store(STARTED, Release);
    if log::is_on() {
        log_process(0);
    } else {
        THRESHOLD.store(plan.shortest(), Relaxed);
    }
}

/// Logs the start of this process.
fn log_process(parent: u32) {
    log::process(parent, modules::program().map(|program| program.in_log));
}

/// Reads which memory the system makes huge.
fn start_hints() {
    let mut text = [0; 64];
    let path = c"/sys/kernel/mm/transparent_hugepage/enabled";
    let got = File::open(path, libc::O_RDONLY).map_or(0, |file| file.read(&mut text));
    let text = text.get(..got).unwrap_or_default();
    let is = |mode: &[u8]| text.windows(mode.len()).any(|word| word == mode);
    HINTS_MATTER.store(is(b"[madvise]"), Relaxed);
    neighbours::start(is(b"[madvise]") || is(b"[always]"));
}

/// Runs in the child of a fork.
pub extern "C" fn after_fork() {
    let _errno = Errno::save();
    thread::after_fork();
    if log::is_on() {
        log_process(PROCESS.swap(os::process_id(), Relaxed));
    }
}

/// Held while an event is processed; preserves `errno`.
pub struct Work(
    #[allow(dead_code)] thread::Inside,
    #[allow(dead_code)] Errno,
);

/// Begins to process an event; `None` before the start, and inside of this library.
pub fn begin() -> Option<Work> {
    if STATE.load(Acquire) == UNSTARTED {
        start();
    }
    if STATE.load(Acquire) != STARTED {
        return None;
    }
    let inside = thread::enter()?;
    Some(Work(inside, Errno::save()))
}

/// Whether stale advice makes other memory huge.
pub fn hints_matter() -> bool {
    HINTS_MATTER.load(Relaxed)
}

/// Whether a malloc block is a mapping of its own, by glibc's chunk header.
pub fn is_own_mapping(address: usize) -> bool {
    const IS_MMAPPED: usize = 2;
    // SAFETY: glibc stores the size, with flags, in front of each block.
    GLIBC.load(Relaxed) && unsafe { *((address - 8) as *const usize) } & IS_MMAPPED != 0
}
