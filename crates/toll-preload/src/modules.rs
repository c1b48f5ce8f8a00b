// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps a code address to its loaded module, by build-id.
//!
//! The properties of a module are computed once and cached; an entry of an unloaded module is
//! detected by comparing the build-id in memory each time.

mod build_id;
mod linker;

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::mem::zeroed;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use toll_wire::{self as wire, MODULE_PATH};

use self::linker::Mapped;
use crate::hash::fnv1a;
use crate::path::{self, base_name};
use crate::{log, os, plan};

/// Owner of a module's code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// This library.
    Ourselves,
    /// The C library and the dynamic linker.
    CLibrary,
    /// A general allocator, or a runtime that allocates memory for others.
    Allocator,
    Program,
}

/// Properties of a module.
pub struct Info {
    end: usize,
    bias: usize,
    /// Address of its build-id.
    note: usize,
    pub owner: Owner,
    /// Build-id and path, in the form of the event file.
    pub record: wire::Module,
    /// Represents the module in the hash of a call site.
    pub hash: u64,
    /// Index in the action file, or `ANY`.
    pub in_plan: u32,
    /// Index in the event file, or `ANY`.
    pub in_log: u32,
}

impl Info {
    /// Offset of a code address from the module's load address.
    pub fn offset(&self, code: usize) -> u64 {
        code.wrapping_sub(self.bias) as u64
    }
}

const MODULES_MAX: usize = 1024;
/// Start address of an unloaded module.
const GONE: usize = usize::MAX;

struct Table {
    /// 0 until the entry is complete.
    starts: [AtomicUsize; MODULES_MAX],
    infos: [UnsafeCell<Info>; MODULES_MAX],
    used: AtomicU32,
}
// SAFETY: an entry is written by the thread that reserved its index, and read only after its start
// was published.
unsafe impl Sync for Table {}

static TABLE: Table = Table {
    starts: [const { AtomicUsize::new(0) }; MODULES_MAX],
    // SAFETY: zeros are a valid `Info` (the first owner is discriminant 0).
    infos: [const { UnsafeCell::new(unsafe { zeroed() }) }; MODULES_MAX],
    used: AtomicU32::new(0),
};

/// Returns the module that contains `code`; `None` for code without one (JIT compilers).
pub fn find(code: usize) -> Option<&'static Info> {
    let mapped = linker::locate(code)?;
    let used = (TABLE.used.load(Acquire) as usize).min(MODULES_MAX);
    for (start, info) in TABLE.starts.iter().zip(&TABLE.infos).take(used) {
        if start.load(Acquire) != mapped.start {
            continue;
        }
        // SAFETY: published, hence complete and never written again.
        let info = unsafe { &*info.get() };
        if is_still(info, &mapped) {
            return Some(info);
        }
        start.store(GONE, Relaxed);
    }
    register(&mapped)
}

/// Whether the memory at `mapped` still holds the module that `info` describes.
fn is_still(info: &Info, mapped: &Mapped) -> bool {
    if info.end != mapped.end || info.bias != mapped.bias {
        return false;
    }
    if info.note == 0 {
        return fnv1a(base_name(&path_of(mapped))) == fnv1a(base_name(&info.record.path));
    }
    let length = info.record.id_len as usize;
    // SAFETY: the note lies in the module, which is mapped: its code called us.
    let id = unsafe { core::slice::from_raw_parts(info.note as *const u8, length) };
    info.record.id.get(..length) == Some(id)
}

#[cold]
fn register(mapped: &Mapped) -> Option<&'static Info> {
    let index = TABLE.used.fetch_add(1, AcqRel) as usize;
    let (Some(start), Some(place)) = (TABLE.starts.get(index), TABLE.infos.get(index)) else {
        TABLE.used.store(MODULES_MAX as u32, Relaxed);
        return None;
    };
    let mut record = wire::Module {
        id_len: 0,
        id: [0; 32],
        path: path_of(mapped),
    };
    let id = build_id::find(mapped).filter(|id| id.len() <= record.id.len());
    if let (Some(id), Some(room)) = (id, record.id.get_mut(..id.map_or(0, |id| id.len()))) {
        room.copy_from_slice(id);
        record.id_len = id.len() as u32;
    }
    let name = fnv1a(base_name(&record.path));
    let info = Info {
        end: mapped.end,
        bias: mapped.bias,
        note: id.map_or(0, |id| id.as_ptr() as usize),
        owner: owner(mapped, &record.path),
        hash: id.map_or(name, fnv1a),
        in_plan: plan::module(&record, name),
        in_log: log::module(&record),
        record,
    };
    // SAFETY: the index is reserved for this thread, and the entry is not published yet.
    unsafe { place.get().write(info) };
    start.store(mapped.start, Release);
    // SAFETY: complete from here on.
    Some(unsafe { &*place.get() })
}

fn owner(mapped: &Mapped, path: &[u8]) -> Owner {
    let ours = find as *const () as usize;
    if (mapped.start..mapped.end).contains(&ours) {
        return Owner::Ourselves;
    }
    const C_LIBRARY: [&[u8]; 4] = [b"libc.so", b"libc-2", b"ld-linux", b"libpthread"];
    const ALLOCATORS: [&[u8]; 9] = [
        b"libstdc++",
        b"libc++",
        b"libjemalloc",
        b"libtcmalloc",
        b"libmimalloc",
        b"libsnmalloc",
        b"librpmalloc",
        b"libtbbmalloc",
        b"libhoard",
    ];
    let name = base_name(path);
    if C_LIBRARY.iter().any(|start| name.starts_with(start)) {
        Owner::CLibrary
    } else if ALLOCATORS.iter().any(|start| name.starts_with(start)) {
        Owner::Allocator
    } else {
        Owner::Program
    }
}

/// Path of the program itself; the dynamic linker has an empty name for it.
struct Program(UnsafeCell<[u8; MODULE_PATH]>);
// SAFETY: written once, by `start`, before any module is looked up.
unsafe impl Sync for Program {}
static PROGRAM: Program = Program(UnsafeCell::new([0; MODULE_PATH]));

/// Called once, before the first lookup. The program's path is read only if it is needed.
pub fn start() {
    linker::start();
    if !log::is_on() && !plan::knows_paths() {
        return;
    }
    let mut buffer = [0; 4096];
    os::read_link(c"/proc/self/exe", &mut buffer);
    // SAFETY: no modules are looked up yet.
    path::copy(unsafe { &mut *PROGRAM.0.get() }, &buffer);
}

/// Returns the program itself, in the form of the event file.
pub fn program() -> Option<&'static Info> {
    unsafe extern "C" {
        fn getauxval(kind: libc::c_ulong) -> libc::c_ulong;
    }
    // SAFETY: getauxval has no precondition.
    find(unsafe { getauxval(libc::AT_PHDR) } as usize)
}

fn path_of(mapped: &Mapped) -> [u8; MODULE_PATH] {
    // SAFETY: the linker's name is terminated and lives as long as the module; the program's own
    // path is no longer written.
    let (name, program) = unsafe { (CStr::from_ptr(mapped.name), *PROGRAM.0.get()) };
    let mut path = program;
    if !name.is_empty() {
        path = [0; MODULE_PATH];
        path::copy(&mut path, name.to_bytes());
    }
    if path.first() == Some(&0) {
        path::copy(&mut path, b"?");
    }
    path
}
