// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event file: mapped shared by the process and all its children, appended
//! with atomic counters, never locked.

use core::mem::size_of;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering::*};

use toll_wire::{self as wire, ANY, Event, EventKind, EventsHeader, MAX_FRAMES, Module};

use crate::{os, thread};

static HEADER: AtomicPtr<EventsHeader> = AtomicPtr::new(core::ptr::null_mut());
static MODULES: AtomicPtr<Module> = AtomicPtr::new(core::ptr::null_mut());
static EVENTS: AtomicPtr<Event> = AtomicPtr::new(core::ptr::null_mut());
/// Whether to announce events to the simulator.
static ANNOUNCE: AtomicBool = AtomicBool::new(false);

/// Maps the event file that the environment names. On any problem there is no log.
pub fn open() {
    let Some((file, size)) = os::variable(wire::variables::EVENTS).and_then(os::map_file) else {
        return;
    };
    if lay_out(file, size).is_none() {
        os::unmap(file as usize, size);
        return;
    }
    ANNOUNCE.store(os::variable(wire::variables::SIM).is_some(), Relaxed);
}

/// Finds the parts of the file, if it is as large as its header requires.
fn lay_out(file: *mut u8, size: usize) -> Option<()> {
    let header = file.cast::<EventsHeader>();
    if size < size_of::<EventsHeader>() {
        return None;
    }
    // SAFETY: the file is at least as long as its header, and its maxima are
    // written once, by its creator.
    let (magic, modules_max, events_max) = unsafe {
        (
            (*header).magic,
            (*header).modules_max as usize,
            (*header).events_max as usize,
        )
    };
    let modules = size_of::<EventsHeader>();
    let events = modules.checked_add(modules_max.checked_mul(size_of::<Module>())?)?;
    let end = events.checked_add(events_max.checked_mul(size_of::<Event>())?)?;
    if magic != wire::EVENTS_MAGIC || end > size {
        return None;
    }
    MODULES.store(file.wrapping_add(modules).cast(), Relaxed);
    EVENTS.store(file.wrapping_add(events).cast(), Relaxed);
    HEADER.store(header, Release);
    Some(())
}

fn header() -> Option<&'static EventsHeader> {
    // SAFETY: null, or a mapping that stays; the changing fields are atomic.
    unsafe { HEADER.load(Acquire).as_ref() }
}

pub fn is_on() -> bool {
    header().is_some()
}

/// Returns the index of a module in the event file and adds it if it is new. The first byte of an
/// entry's path is written last: until then the entry is invalid.
pub fn module(record: &Module) -> u32 {
    let Some(header) = header() else {
        return ANY;
    };
    let used = header.modules.load(Acquire).min(header.modules_max);
    if let Some(index) = (0..used).find(|&index| holds(index, record)) {
        return index;
    }
    let index = header.modules.fetch_add(1, AcqRel);
    if index >= header.modules_max {
        header.modules.store(header.modules_max, Relaxed);
        return ANY;
    }
    let [first, ..] = record.path;
    let mut entry = *record;
    entry.path[0] = 0;
    let place = MODULES.load(Relaxed).wrapping_add(index as usize);
    // SAFETY: the entry is inside the file, and its index is reserved for this thread.
    unsafe {
        place.write(entry);
        path_start(place).store(first, Release);
    }
    index
}

/// # Safety
/// `place` must be an entry of the file.
unsafe fn path_start<'a>(place: *mut Module) -> &'a AtomicU8 {
    // SAFETY: by the contract; all processes write this byte atomically.
    unsafe { AtomicU8::from_ptr((&raw mut (*place).path).cast()) }
}

fn holds(index: u32, record: &Module) -> bool {
    let place = MODULES.load(Relaxed).wrapping_add(index as usize);
    // SAFETY: inside the file; complete once the path's first byte is set.
    unsafe {
        path_start(place).load(Acquire) != 0
            && (*place).id_len == record.id_len
            && (*place).id == record.id
            && (*place).path == record.path
    }
}

/// The frames of an event, in the form of the file.
pub struct Frames {
    pub used: u32,
    pub module: [u32; MAX_FRAMES],
    pub offset: [u64; MAX_FRAMES],
}

impl Frames {
    pub const UNKNOWN: Frames = Frames {
        used: 0,
        module: [ANY; MAX_FRAMES],
        offset: [0; MAX_FRAMES],
    };

    /// The start of a module, by its index in the file.
    fn start_of(module: u32) -> Frames {
        let mut frames = Frames::UNKNOWN;
        frames.used = 1;
        frames.module[0] = module;
        frames
    }
}

/// An event from the caller; process, time and thread are added here.
pub struct Entry {
    pub kind: EventKind,
    pub address: usize,
    pub length: usize,
    pub old: usize,
    pub frames: Frames,
    pub ordinal: u32,
    pub rule: u32,
    pub advised: u64,
}

/// Appends an event. If the file is full, only counts it.
pub fn append(entry: &Entry) {
    let Some(header) = header() else {
        return;
    };
    let process = os::process_id();
    // Stop counting long before an overflow.
    if header.events.load(Relaxed) > u32::MAX / 2 {
        return;
    }
    let index = header.events.fetch_add(1, AcqRel);
    if index >= header.events_max {
        return;
    }
    let event = Event {
        kind: 0,
        process,
        time_ns: os::now_ns(),
        address: entry.address as u64,
        length: entry.length as u64,
        old: entry.old as u64,
        thread: thread::ordinal(),
        ordinal: entry.ordinal,
        frames_used: entry.frames.used,
        rule: entry.rule,
        advised: entry.advised,
        frame_module: entry.frames.module,
        frame_offset: entry.frames.offset,
    };
    let place = EVENTS.load(Relaxed).wrapping_add(index as usize);
    // SAFETY: the event is inside the file, and its index is reserved for this thread.
    unsafe {
        place.write(event);
        AtomicU32::from_ptr(&raw mut (*place).kind).store(entry.kind as u32, Release);
    }
    announce(index, entry, process);
}

/// Makes an unused system call that the simulator intercepts.
fn announce(index: u32, entry: &Entry, process: u32) {
    if ANNOUNCE.load(Relaxed) {
        // SAFETY: an unused number; a kernel returns ENOSYS.
        unsafe {
            libc::syscall(
                wire::MAGIC_SYSCALL,
                index as usize,
                entry.address,
                entry.length,
                entry.kind as usize,
                process as usize,
                entry.old,
            )
        };
    }
}

/// Logs the start of the process image (`parent` 0), or of a fork of `parent`. The only frame is
/// the program itself, given by its index in the file.
pub fn process(parent: u32, program: Option<u32>) {
    append(&Entry {
        kind: EventKind::Process,
        address: os::process_id() as usize,
        length: 0,
        old: parent as usize,
        frames: program.map_or(Frames::UNKNOWN, Frames::start_of),
        ordinal: 0,
        rule: ANY,
        advised: 0,
    });
}
