// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exported functions. Each compares a size or an address and forwards to the real function;
//! the rest is in functions marked cold.
//!
//! # Safety
//! Each function has the contract of the C function of the same name.
#![allow(clippy::missing_safety_doc)]

use core::ffi::{c_int, c_long, c_void};

use crate::birth::{block_born, mapping_born};
use crate::os::{Errno, PAGE, rounded};
use crate::start::{self, threshold};
use crate::{death, hugetlb, live, morsels, real, remap, resize, shared, spawn};

/// Defines a function that creates blocks: a size comparison, then the real function, both as
/// jumps.
macro_rules! maker {
    ($name:ident, $large:ident, ($($arg:ident: $ty:ty),*), $bytes:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> *mut c_void {
            unsafe {
                if $bytes < threshold() { real::$name($($arg),*) } else { $large($($arg),*) }
            }
        }

        #[cold]
        #[inline(never)]
        unsafe extern "C" fn $large($($arg: $ty),*) -> *mut c_void {
            let block = unsafe { real::$name($($arg),*) };
            block_born(block as usize, $bytes);
            block
        }
    };
}

maker!(malloc, large_malloc, (size: usize), size);
maker!(calloc, large_calloc, (count: usize, size: usize), bytes(count, size));
maker!(memalign, large_memalign, (alignment: usize, size: usize), size);
maker!(aligned_alloc, large_aligned_alloc, (alignment: usize, size: usize), size);
maker!(valloc, large_valloc, (size: usize), size);
maker!(pvalloc, large_pvalloc, (size: usize), size);

/// Returns the bytes of an array; 0 on overflow, which the real function rejects.
#[inline(always)]
fn bytes(count: usize, size: usize) -> usize {
    count.checked_mul(size).unwrap_or(0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    alignment: usize,
    size: usize,
) -> c_int {
    let result = unsafe { real::posix_memalign(place, alignment, size) };
    if size >= threshold() && result == 0 {
        block_born(unsafe { *place } as usize, size);
    }
    result
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if size < threshold() && !live::may_have(old as usize) {
        return unsafe { real::realloc(old, size) };
    }
    unsafe { reallocate(old, size) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn reallocate(old: *mut c_void, size: usize) -> *mut c_void {
    let lifted = resize::lift_block(old as usize);
    let new = unsafe { real::realloc(old, size) };
    match lifted {
        None if size >= threshold() => block_born(new as usize, size),
        None => (),
        Some(lifted) if !new.is_null() => lifted.block_moved(new as usize, size),
        Some(lifted) if size == 0 => lifted.died(),
        Some(lifted) => lifted.put_back(),
    }
    new
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size) {
        Some(bytes) => unsafe { realloc(old, bytes) },
        None => {
            // SAFETY: the location is valid for the life of the thread.
            unsafe { *libc::__errno_location() = libc::ENOMEM };
            core::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    unsafe {
        if live::may_have(block as usize) {
            free_known(block)
        } else {
            real::free(block)
        }
    }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn free_known(block: *mut c_void) {
    death::block_dies(block as usize);
    unsafe { real::free(block) }
}

/// Whether a mapping is an event: large, anonymous, with default page size.
#[inline(always)]
fn is_event(length: usize, flags: c_int) -> bool {
    const LEFT_ALONE: c_int = libc::MAP_HUGETLB | libc::MAP_GROWSDOWN;
    length >= threshold() && flags & libc::MAP_ANONYMOUS != 0 && flags & LEFT_ALONE == 0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    if morsels::any() && flags & libc::MAP_ANONYMOUS == 0 {
        let request = morsels::Request {
            address: address as usize,
            length,
            protection,
            flags,
            fd,
            offset,
        };
        if let Some(mapping) = morsels::serve(&request) {
            return mapping as *mut c_void;
        }
    }
    let mapping = unsafe { real::mmap(address, length, protection, flags, fd, offset) };
    let is_file = shared::any() && flags & libc::MAP_ANONYMOUS == 0;
    if mapping == libc::MAP_FAILED || !is_file && !is_event(length, flags) {
        return mapping;
    }
    let request = shared::Request {
        address: address as usize,
        length,
        flags,
        // Anonymous memory has none.
        offset: if is_file { offset } else { 0 },
    };
    if is_file {
        return shared::file_mapped(mapping as usize, fd, &request) as *mut c_void;
    }
    match mapping_born(mapping as usize, protection, &request) {
        Ok(address) => address as *mut c_void,
        Err(_) => unsafe { unmap_damaged(mapping, length) },
    }
}

/// Unmaps a mapping with a hole: there is no memory for it.
#[cold]
#[inline(never)]
unsafe extern "C" fn unmap_damaged(mapping: *mut c_void, length: usize) -> *mut c_void {
    unsafe {
        real::munmap(mapping, length);
        *libc::__errno_location() = libc::ENOMEM;
    }
    libc::MAP_FAILED
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    unsafe { mmap(address, length, protection, flags, fd, offset) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    if live::may_have(address as usize) {
        resize::mapping_dies(address as usize, length);
    }
    if hugetlb::any() {
        return unsafe { unmap_hugetlb(address, length) };
    }
    unsafe { real::munmap(address, length) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn unmap_hugetlb(address: *mut c_void, length: usize) -> c_int {
    let start = address as usize;
    let end = length
        .checked_next_multiple_of(PAGE)
        .and_then(|length| start.checked_add(length));
    match end {
        Some(end) if start % PAGE == 0 && length != 0 => {
            hugetlb::unmap(start, end, |from, to| unsafe {
                real::munmap(from as *mut c_void, to - from)
            })
        }
        // The system returns the error.
        _ => unsafe { real::munmap(address, length) },
    }
}

/// In C, the argument `new` depends on the flags; its register is forwarded unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_length: usize,
    length: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    if !live::may_have(old as usize) {
        return unsafe { real::mremap(old, old_length, length, flags, new) };
    }
    unsafe { remap_known(old, old_length, length, flags, new) }
}

#[cold]
#[inline(never)]
unsafe extern "C" fn remap_known(
    old: *mut c_void,
    old_length: usize,
    length: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    let errno = Errno::save();
    let lifted = resize::lift_mapping(old as usize, rounded(old_length));
    let mut result = unsafe { real::mremap(old, old_length, length, flags, new) };
    let Some(lifted) = lifted else {
        errno.forget();
        return result;
    };
    if result == libc::MAP_FAILED && lifted.is_split() {
        let request = remap::Request {
            old: old as usize,
            old_length: rounded(old_length),
            length: rounded(length),
            flags,
            new: new as usize,
        };
        if let Some(address) = remap::resize(&lifted, &request) {
            result = address as *mut c_void;
        }
    }
    if result == libc::MAP_FAILED {
        // Preserve errno.
        errno.forget();
        lifted.put_back();
    } else {
        lifted.mapping_moved(result as usize, length);
    }
    result
}

/// Numbers the new thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    routine: usize,
    argument: *mut c_void,
) -> c_int {
    unsafe {
        if start::is_off() {
            real::pthread_create(thread, attributes, routine, argument)
        } else {
            spawn::create(thread, attributes, routine, argument)
        }
    }
}

/// After a filter is installed, this library makes no system calls of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(
    option: c_int,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        morsels::confine();
    }
    unsafe { real::prctl(option, second, third, fourth, fifth) }
}

/// In C, calls may have fewer arguments; the unused registers are forwarded unchanged, as in
/// [`prctl`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    first: usize,
    second: usize,
    third: usize,
    fourth: usize,
    fifth: usize,
    sixth: usize,
) -> c_long {
    if is_filter(number, first) {
        morsels::confine();
    }
    unsafe { real::syscall(number, first, second, third, fourth, fifth, sixth) }
}

/// Whether a system call installs a filter.
#[inline(always)]
fn is_filter(number: c_long, first: usize) -> bool {
    const SET_MODE_STRICT: usize = libc::SECCOMP_SET_MODE_STRICT as usize;
    const SET_MODE_FILTER: usize = libc::SECCOMP_SET_MODE_FILTER as usize;
    match number {
        libc::SYS_seccomp => matches!(first, SET_MODE_STRICT | SET_MODE_FILTER),
        libc::SYS_prctl => first == libc::PR_SET_SECCOMP as usize,
        _ => false,
    }
}
