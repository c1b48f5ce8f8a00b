// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary layouts shared by `tollfree`, the preload library and the simulator plugin. All are
//! little-endian and of fixed size, without pointers. plugins/user/wire.h repeats the part that the
//! plugin needs; a test compares them.
//!
//! Three files exist:
//! - the *action file* (`TOLLFREE_ACTIONS`): header, modules, rules, intervals, addresses;
//!   read-only for the target;
//! - the *event file* (`TOLLFREE_EVENTS`): header, module table, event records; mapped shared by
//!   the target and all its children, appended with atomic counters;
//! - the *morsel file* (`TOLLFREE_SERVED`): the files served from morsels, and how often each was;
//!   mapped shared by the target and all its children.

/// Environment variable: path of the action file.
pub const ENV_ACTIONS: &str = "TOLLFREE_ACTIONS";
/// Environment variable: path of the event file.
pub const ENV_EVENTS: &str = "TOLLFREE_EVENTS";
/// Environment variable: path of the morsel file.
pub const ENV_SERVED: &str = "TOLLFREE_SERVED";
/// Environment variable, set only inside the simulator: announce each event by [`MAGIC_SYSCALL`].
pub const ENV_SIM: &str = "TOLLFREE_SIM";

/// Smallest allocation that is an event, bytes. Below it the hooks only compare the size.
pub const MIN_EVENT: usize = 1 << 20;
/// Maximum number of frames of an allocation's call stack.
pub const MAX_FRAMES: usize = 4;
/// An unused system call number: the simulator intercepts it, the kernel returns ENOSYS.
/// Arguments: event index, address, length, [`EventKind`], process id.
pub const MAGIC_SYSCALL: i64 = 0x746f_6c6c;

/// Magic of an action file.
pub const ACTIONS_MAGIC: [u8; 8] = *b"TOLLACT1";
/// Magic of an event file.
pub const EVENTS_MAGIC: [u8; 8] = *b"TOLLEVT1";

/// Magic of a morsel file.
pub const SERVED_MAGIC: [u8; 8] = *b"TOLLMSL2";

/// "Any" in [`Rule::ordinal`], [`Rule::thread`] and frame counts.
pub const ANY: u32 = u32::MAX;

/// Action file header. Sections follow in the order modules, rules, intervals, addresses.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ActionsHeader {
    pub magic: [u8; 8],
    pub modules: u32,
    pub rules: u32,
    pub intervals: u32,
    /// Bits of [`flags`].
    pub flags: u32,
    /// Number of [`AddressRange`]s.
    pub addresses: u32,
    pub _pad: u32,
}

/// Bits of [`ActionsHeader::flags`].
pub mod flags {
    /// Advise every mapping and block of at least 2 MiB (the variant "all"); rules are ignored.
    pub const ALL: u32 = 1;
    /// Apply MADV_NOHUGEPAGE to planned losers (only if THP is "always").
    pub const NOHUGE: u32 = 2;
    /// Back the ranges of the section `addresses` from the hugetlb pool: immediately after the
    /// program's own private anonymous mmap returns (untouched memory), map MAP_HUGETLB | MAP_FIXED
    /// over them.
    pub const HUGETLB: u32 = 4;
}

/// A loaded object, by build-id.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Module {
    /// Bytes of `id` in use; 0: the module has no build-id and `id` is unused.
    pub id_len: u32,
    /// GNU build-id; for a module without one, the FNV-1a 64 hash of its basename.
    pub id: [u8; 32],
    /// Path, cut at the front if it is too long, NUL-terminated.
    pub path: [u8; 220],
}

/// A range of return addresses in a module.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct FrameMatch {
    /// Index into the modules.
    pub module: u32,
    pub _pad: u32,
    /// Offsets `low..=high` match.
    pub low: u64,
    pub high: u64,
}

/// The allocation events that a set of intervals applies to. Rules are tried in order; the first
/// match wins, so exact rules precede class rules of the same site.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Frames that must match, innermost first; `frames_used` of them are valid. 0 matches every
    /// event.
    pub frames: [FrameMatch; MAX_FRAMES],
    pub frames_used: u32,
    /// Ordinal of the event at its site, class and thread, or [`ANY`].
    pub ordinal: u32,
    /// Creation ordinal of the thread, or [`ANY`].
    pub thread: u32,
    pub _pad: u32,
    /// Lengths `low..=high` match.
    pub length_low: u64,
    pub length_high: u64,
    /// Intervals, relative to the block's start: `first..first + count`.
    pub first: u32,
    pub count: u32,
}

/// A byte interval of a block and the advice for its regions.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    pub start: u64,
    /// Exclusive; `u64::MAX` is the end of the block.
    pub end: u64,
    /// 1: MADV_HUGEPAGE; 2: MADV_NOHUGEPAGE (only with [`flags::NOHUGE`]); 3: as 1, and a block
    /// without a region of its own fills regions together with its neighbours of the same rules.
    pub advice: u32,
    pub _pad: u32,
}

/// A range of fixed addresses (as in `largepages.txt`), advised huge as soon as the program maps
/// anonymous memory there. Sorted, disjoint, both ends multiples of 2 MiB.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AddressRange {
    pub start: u64,
    /// Exclusive.
    pub end: u64,
}

/// Kind of an event.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A block from malloc, calloc, memalign, operator new...
    Malloc = 1,
    /// An anonymous mapping.
    Mmap = 2,
    /// realloc or mremap: `old` is the previous address; the event keeps its identity and has the
    /// new one.
    Move = 3,
    /// free or munmap.
    Free = 4,
    /// The process image or a fork of it started: `address` is the process id, `old` the parent's
    /// after a fork (0: a new image), the only frame is the program itself.
    Process = 5,
}

/// Event file header. [`EventsHeader::modules_max`] modules follow, then the events.
#[repr(C)]
#[derive(Debug)]
pub struct EventsHeader {
    pub magic: [u8; 8],
    pub events_max: u32,
    pub modules_max: u32,
    /// Index of the next free event; may exceed `events_max`: the excess was lost.
    pub events: core::sync::atomic::AtomicU32,
    pub modules: core::sync::atomic::AtomicU32,
}

/// One allocation event.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// [`EventKind`], stored last with release order: 0 means "not written yet".
    pub kind: u32,
    pub process: u32,
    /// CLOCK_MONOTONIC, ns.
    pub time_ns: u64,
    pub address: u64,
    pub length: u64,
    /// For [`EventKind::Move`]: the old address.
    pub old: u64,
    /// Creation ordinal of the thread in its process.
    pub thread: u32,
    /// Earlier events of this thread with the same site and class.
    pub ordinal: u32,
    pub frames_used: u32,
    /// Index of the rule that matched, or [`ANY`].
    pub rule: u32,
    /// Number of bytes that were advised huge.
    pub advised: u64,
    /// Module index and offset of each frame, innermost first.
    pub frame_module: [u32; MAX_FRAMES],
    pub frame_offset: [u64; MAX_FRAMES],
}

/// Morsel file header. [`ServedHeader::count`] records of [`Served`] follow.
#[repr(C)]
#[derive(Debug)]
pub struct ServedHeader {
    pub magic: [u8; 8],
    pub count: u32,
    /// File mappings that were not inspected because the program had installed a filter.
    pub confined: core::sync::atomic::AtomicU32,
}

/// A file with read-only mappings that are served from a morsel, while the file is
/// unchanged since the copy.
#[repr(C)]
#[derive(Debug)]
pub struct Served {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    /// Time of the last modification: seconds and nanoseconds.
    pub seconds: i64,
    pub nanoseconds: u64,
    /// Time of the last change: seconds and nanoseconds.
    pub changed_seconds: i64,
    pub changed_nanoseconds: u64,
    /// The morsel's own device and inode: another file at its path is not mapped.
    pub morsel_device: u64,
    pub morsel_inode: u64,
    /// Alignment of the offsets and ends of its mappings, bytes.
    pub page: u64,
    /// Number of served mappings, and their bytes.
    pub mappings: core::sync::atomic::AtomicU64,
    pub bytes: core::sync::atomic::AtomicU64,
    /// Number of mappings that were left to the file.
    pub left: core::sync::atomic::AtomicU64,
    /// Path of the morsel, NUL-terminated.
    pub path: [u8; SERVED_PATH],
}

/// Maximum length of a path in [`Served`].
pub const SERVED_PATH: usize = 4096;

/// `floor(log2(length))`, the length class of an event; 0 for an empty one.
pub const fn class(length: u64) -> u8 {
    if length == 0 { 0 } else { length.ilog2() as u8 }
}
