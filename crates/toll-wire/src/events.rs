// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event file: the header, [`EventsHeader::modules_max`] modules, then the events; and how the
//! preload library announces an event to the simulator.

use core::sync::atomic::AtomicU32;

use crate::MAX_FRAMES;

/// Magic of an event file.
pub const EVENTS_MAGIC: [u8; 8] = *b"TOLLEVT1";
/// Smallest allocation that is an event, bytes. Below it the hooks only compare the size.
pub const MIN_EVENT: usize = 1 << 20;

/// An unused system call number: the simulator intercepts it, the kernel returns ENOSYS.
/// Arguments: event index, address, length, [`EventKind`], process id, old address (of a move).
pub const MAGIC_SYSCALL: i64 = 0x746f_6c6c;

c_enum! {
    /// Kind of an event.
    pub enum EventKind as toll_event {
        /// A block from malloc, calloc, memalign, operator new...
        Malloc = 1 => TOLL_EVENT_MALLOC,
        /// An anonymous mapping.
        Mmap = 2 => TOLL_EVENT_MMAP,
        /// realloc or mremap: `old` is the previous address; the event keeps its identity and has
        /// the new one.
        Move = 3 => TOLL_EVENT_MOVE,
        /// free or munmap.
        Free = 4 => TOLL_EVENT_FREE,
        /// The process image or a fork of it started: `address` is the process id, `old` the
        /// parent's after a fork (0: a new image), the only frame is the program itself.
        Process = 5 => TOLL_EVENT_PROCESS,
        /// A shared anonymous mapping.
        Shared = 6 => TOLL_EVENT_SHARED,
    }
}

/// Event file header. [`EventsHeader::modules_max`] modules follow, then the events.
#[repr(C)]
#[derive(Debug)]
pub struct EventsHeader {
    pub magic: [u8; 8],
    pub events_max: u32,
    pub modules_max: u32,
    /// Index of the next free event; may exceed `events_max`: the excess was lost.
    pub events: AtomicU32,
    pub modules: AtomicU32,
}

layout! {
    /// One allocation event.
    pub struct Event {
        /// An `EventKind`, stored last with release order: 0 means "not written yet".
        pub kind: u32,
        pub process: u32,
        /// CLOCK_MONOTONIC, ns.
        pub time_ns: u64,
        pub address: u64,
        pub length: u64,
        /// For `EventKind::Move`: the old address.
        pub old: u64,
        /// Creation ordinal of the thread in its process.
        pub thread: u32,
        /// Earlier events of this thread with the same site and class.
        pub ordinal: u32,
        pub frames_used: u32,
        /// Index of the rule that matched, or `ANY`.
        pub rule: u32,
        /// Number of bytes that were advised huge.
        pub advised: u64,
        /// Module index and offset of each frame, innermost first.
        pub frame_module: [u32; MAX_FRAMES],
        pub frame_offset: [u64; MAX_FRAMES],
    }
}

/// `floor(log2(length))`, the length class of an event; 0 for an empty one.
pub const fn class(length: u64) -> u8 {
    if length == 0 { 0 } else { length.ilog2() as u8 }
}
