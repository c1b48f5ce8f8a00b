// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks the dynamic linker for the module of an address: with `_dl_find_object`, which takes no
//! lock and may be called in a signal handler, or with `dl_iterate_phdr` in C libraries without it.

use core::ffi::{c_char, c_int, c_void};
use core::mem::{transmute, zeroed};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::os::{NOTHING, PAGE};
use crate::real;

static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);

/// Called once, before the first lookup.
pub fn start() {
    FIND_OBJECT.store(real::optional(c"_dl_find_object"), Relaxed);
}

/// A module as the dynamic linker reports it now.
pub struct Mapped {
    pub start: usize,
    pub end: usize,
    pub bias: usize,
    /// Its path; empty for the program itself.
    pub name: *const c_char,
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

/// Returns the module that contains `code`.
pub fn locate(code: usize) -> Option<Mapped> {
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
