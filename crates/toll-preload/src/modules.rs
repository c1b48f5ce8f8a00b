// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps a code address to its loaded module, by build-id.
//!
//! Modules are looked up with `_dl_find_object`, which takes no lock and may be called in a signal
//! handler (C libraries without it: `dl_iterate_phdr`). The properties of a module are computed
//! once and cached; an entry of an unloaded module is detected by comparing the build-id in memory
//! each time.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{size_of, transmute, zeroed};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

use toll_model::wire;

use crate::os::{self, NOTHING, PAGE};
use crate::{log, plan, real};

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

/// A module as the dynamic linker reports it now.
struct Mapped {
    start: usize,
    end: usize,
    bias: usize,
    name: *const c_char,
}

/// Returns the module that contains `code`; `None` for code without one (JIT compilers).
pub fn find(code: usize) -> Option<&'static Info> {
    let mapped = locate(code)?;
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
        return hash(base_name(&path_of(mapped))) == hash(base_name(&info.record.path));
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
    let id = build_id(mapped).filter(|id| id.len() <= record.id.len());
    if let (Some(id), Some(room)) = (id, record.id.get_mut(..id.map_or(0, |id| id.len()))) {
        room.copy_from_slice(id);
        record.id_len = id.len() as u32;
    }
    let name = hash(base_name(&record.path));
    let info = Info {
        end: mapped.end,
        bias: mapped.bias,
        note: id.map_or(0, |id| id.as_ptr() as usize),
        owner: owner(mapped, &record.path),
        hash: id.map_or(name, hash),
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

/// Returns the part of a NUL-terminated path after its last slash.
pub fn base_name(path: &[u8]) -> &[u8] {
    let end = path.iter().position(|&byte| byte == 0);
    let path = path.get(..end.unwrap_or(path.len())).unwrap_or(path);
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// FNV-1a, 64 bits.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

const PATH: usize = 220;

/// Path of the program itself; the dynamic linker has an empty name for it.
struct Program(UnsafeCell<[u8; PATH]>);
// SAFETY: written once, by `start`, before any module is looked up.
unsafe impl Sync for Program {}
static PROGRAM: Program = Program(UnsafeCell::new([0; PATH]));

static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);

/// Called once, before the first lookup. The program's path is read only if it is needed.
pub fn start() {
    FIND_OBJECT.store(real::optional(c"_dl_find_object"), Relaxed);
    if !log::is_on() && !plan::knows_paths() {
        return;
    }
    let mut buffer = [0; 4096];
    os::read_link(c"/proc/self/exe", &mut buffer);
    // SAFETY: no modules are looked up yet.
    copy_path(unsafe { &mut *PROGRAM.0.get() }, &buffer);
}

/// Returns the program itself, in the form of the event file.
pub fn program() -> Option<&'static Info> {
    unsafe extern "C" {
        fn getauxval(kind: libc::c_ulong) -> libc::c_ulong;
    }
    // SAFETY: getauxval has no precondition.
    find(unsafe { getauxval(libc::AT_PHDR) } as usize)
}

/// Copies a NUL-terminated path, cut at the front if it is too long.
fn copy_path(to: &mut [u8; PATH], from: &[u8]) {
    let length = from
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(from.len());
    let cut = length.saturating_sub(PATH - 1);
    let kept = from.get(cut..length).unwrap_or_default();
    for (to, from) in to.iter_mut().zip(kept) {
        *to = *from;
    }
}

fn path_of(mapped: &Mapped) -> [u8; PATH] {
    // SAFETY: the linker's name is terminated and lives as long as the module; the program's own
    // path is no longer written.
    let (name, program) = unsafe { (CStr::from_ptr(mapped.name), *PROGRAM.0.get()) };
    let mut path = program;
    if !name.is_empty() {
        path = [0; PATH];
        copy_path(&mut path, name.to_bytes());
    }
    if path.first() == Some(&0) {
        copy_path(&mut path, b"?");
    }
    path
}

/// Result of `_dl_find_object`.
#[repr(C)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    map: *const LinkMap,
    frames: usize,
    reserved: [u64; 7],
}

/// The public first fields of the dynamic linker's `link_map`.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
}

fn locate(code: usize) -> Option<Mapped> {
    let find_object = FIND_OBJECT.load(Relaxed);
    if find_object.is_null() {
        return locate_by_walk(code);
    }
    // SAFETY: the function's documented type; the result is plain data.
    unsafe {
        let find_object: unsafe extern "C" fn(usize, *mut Found) -> c_int = transmute(find_object);
        let mut found: Found = zeroed();
        if find_object(code, &mut found) != 0 || found.map.is_null() {
            return None;
        }
        Some(Mapped {
            start: found.start,
            end: found.end,
            bias: (*found.map).bias,
            name: (*found.map).name,
        })
    }
}

struct Search {
    code: usize,
    found: Option<Mapped>,
}

fn locate_by_walk(code: usize) -> Option<Mapped> {
    let mut search = Search { code, found: None };
    // SAFETY: the callback gets `search` back.
    unsafe { libc::dl_iterate_phdr(Some(compare), (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" fn compare(
    info: *mut libc::dl_phdr_info,
    _: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the linker hands out valid headers; `search` is ours.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    let bias = info.dlpi_addr as usize;
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let mut start = usize::MAX;
    let mut end = 0;
    for header in headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD)
    {
        let address = bias.wrapping_add(header.p_vaddr as usize);
        start = start.min(address & !(PAGE - 1));
        end = end.max(address.wrapping_add(header.p_memsz as usize));
    }
    if !(start..end).contains(&search.code) {
        return 0;
    }
    search.found = Some(Mapped {
        start,
        end,
        bias,
        name: info.dlpi_name,
    });
    1
}

/// Returns the build-id in a module's memory.
fn build_id(mapped: &Mapped) -> Option<&'static [u8]> {
    let header = mapped.start as *const libc::Elf64_Ehdr;
    // SAFETY: the first page of a module is mapped and readable, and all reads are checked to lie
    // inside the module.
    unsafe {
        if (*header).e_ident.get(..4) != Some(b"\x7fELF") {
            return None;
        }
        let count = usize::from((*header).e_phnum);
        let first = (*header).e_phoff as usize;
        if first.checked_add(count * size_of::<libc::Elf64_Phdr>())? > PAGE {
            return None;
        }
        let headers = (mapped.start + first) as *const libc::Elf64_Phdr;
        let headers = core::slice::from_raw_parts(headers, count);
        headers
            .iter()
            .filter(|header| header.p_type == libc::PT_NOTE)
            .find_map(|header| {
                let start = mapped.bias.wrapping_add(header.p_vaddr as usize);
                let end = start.checked_add(header.p_memsz as usize)?;
                if start < mapped.start || end > mapped.end {
                    return None;
                }
                let bytes = core::slice::from_raw_parts(start as *const u8, end - start);
                id_in_notes(bytes, header.p_align as usize)
            })
    }
}

/// Returns the GNU build-id among the notes of one segment.
fn id_in_notes(mut notes: &'static [u8], align: usize) -> Option<&'static [u8]> {
    const BUILD_ID: u32 = 3;
    let align = if align == 8 { 8 } else { 4 };
    let padded = |length: usize| length.checked_next_multiple_of(align);
    loop {
        let word = |at: usize| -> Option<u32> {
            Some(u32::from_le_bytes(notes.get(at..at + 4)?.try_into().ok()?))
        };
        let (name_length, length, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name = notes.get(12..)?.get(..name_length)?;
        let start = padded(12usize.checked_add(name_length)?)?;
        let content = notes.get(start..)?.get(..length)?;
        if kind == BUILD_ID && name == b"GNU\0" && !content.is_empty() {
            return Some(content);
        }
        notes = notes.get(padded(start.checked_add(length)?)?..)?;
    }
}
