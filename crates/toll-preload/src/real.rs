// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real functions behind the hooks: the next ones in the dynamic linker's search order, so that
//! another allocator keeps working.
//!
//! Each pointer starts at a stub that looks all of them up at the first call, so that the hooks
//! need no null check. While a thread looks them up (dlsym may allocate), its allocations are
//! served from a small buffer.

use core::ffi::{CStr, c_int, c_long, c_void};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use crate::os::{self, NOTHING};
use crate::thread;

macro_rules! real {
    ($($(#[$doc:meta])* $name:ident: $cell:ident, $symbol:literal, $stub:ident, $fallback:path,
       ($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        $(
            static $cell: AtomicPtr<c_void> = AtomicPtr::new($stub as *mut c_void);

            $(#[$doc])*
            ///
            /// # Safety
            /// As the function of that name.
            #[inline(always)]
            pub unsafe fn $name($($arg: $ty),*) -> $ret {
                // SAFETY: the pointer always is a function of this type.
                unsafe {
                    let function: unsafe extern "C" fn($($ty),*) -> $ret =
                        transmute($cell.load(Relaxed));
                    function($($arg),*)
                }
            }

            unsafe extern "C" fn $stub($($arg: $ty),*) -> $ret {
                // SAFETY: forwards its arguments.
                unsafe {
                    if resolve() { $name($($arg),*) } else { $fallback($($arg),*) }
                }
            }
        )*

        /// Looks up all functions; a missing one gets its fallback.
        fn look_up() {
            $(
                let found = os::next_symbol($symbol);
                let fallback: unsafe extern "C" fn($($ty),*) -> $ret = $fallback;
                $cell.store(if found.is_null() { fallback as *mut c_void } else { found }, Relaxed);
            )*
        }
    };
}

real! {
    malloc: MALLOC, c"malloc", first_malloc, early::malloc, (size: usize) -> *mut c_void;
    calloc: CALLOC, c"calloc", first_calloc, early::calloc, (count: usize, size: usize) -> *mut c_void;
    realloc: REALLOC, c"realloc", first_realloc, early::realloc, (old: *mut c_void, size: usize) -> *mut c_void;
    free: FREE, c"free", first_free, early::free, (block: *mut c_void) -> ();
    memalign: MEMALIGN, c"memalign", first_memalign, early::memalign, (alignment: usize, size: usize) -> *mut c_void;
    aligned_alloc: ALIGNED_ALLOC, c"aligned_alloc", first_aligned_alloc, early::memalign, (alignment: usize, size: usize) -> *mut c_void;
    posix_memalign: POSIX_MEMALIGN, c"posix_memalign", first_posix_memalign, early::posix_memalign, (place: *mut *mut c_void, alignment: usize, size: usize) -> c_int;
    valloc: VALLOC, c"valloc", first_valloc, early::valloc, (size: usize) -> *mut c_void;
    pvalloc: PVALLOC, c"pvalloc", first_pvalloc, early::valloc, (size: usize) -> *mut c_void;
    mmap: MMAP, c"mmap", first_mmap, early::mmap, (address: *mut c_void, length: usize, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    munmap: MUNMAP, c"munmap", first_munmap, early::munmap, (address: *mut c_void, length: usize) -> c_int;
    mremap: MREMAP, c"mremap", first_mremap, early::mremap, (old: *mut c_void, old_length: usize, length: usize, flags: c_int, new: *mut c_void) -> *mut c_void;
    prctl: PRCTL, c"prctl", first_prctl, early::prctl, (option: c_int, second: usize, third: usize, fourth: usize, fifth: usize) -> c_int;
    syscall: SYSCALL, c"syscall", first_syscall, early::syscall, (number: c_long, first: usize, second: usize, third: usize, fourth: usize, fifth: usize, sixth: usize) -> c_long;
    pthread_create: PTHREAD_CREATE, c"pthread_create", first_pthread_create, early::pthread_create, (thread: *mut c_void, attributes: *const c_void, routine: usize, argument: *mut c_void) -> c_int;
}

static FREE_BEHIND: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);
static REALLOC_BEHIND: AtomicPtr<c_void> = AtomicPtr::new(NOTHING);

/// Looks up the real functions; false while the same thread is doing so. Two threads may do it
/// concurrently: both find the same.
pub fn resolve() -> bool {
    let thread = thread::current();
    if thread.resolving.swap(1, Relaxed) != 0 {
        return false;
    }
    look_up();
    if early::was_used() {
        // Blocks of the early buffer exist: check for them from now on.
        FREE_BEHIND.store(os::next_symbol(c"free"), Relaxed);
        REALLOC_BEHIND.store(os::next_symbol(c"realloc"), Relaxed);
        FREE.store(free_knowing as *mut c_void, Relaxed);
        REALLOC.store(realloc_knowing as *mut c_void, Relaxed);
    }
    thread.resolving.store(0, Relaxed);
    true
}

/// Returns the address of the real malloc, which identifies its owner.
pub fn malloc_address() -> usize {
    MALLOC.load(Relaxed) as usize
}

/// Returns a C library function that this library itself uses, if it exists.
pub fn optional(name: &CStr) -> *mut c_void {
    os::next_symbol(name)
}

unsafe extern "C" fn free_knowing(block: *mut c_void) {
    if early::owns(block) {
        return;
    }
    // SAFETY: the stored pointer is the real free.
    unsafe {
        let behind: unsafe extern "C" fn(*mut c_void) = transmute(FREE_BEHIND.load(Relaxed));
        behind(block)
    }
}

unsafe extern "C" fn realloc_knowing(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: the pointer was the real realloc; an early block is readable to the
    // end of the buffer, and never longer than what is copied.
    unsafe {
        if !early::owns(old) {
            let behind: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void =
                transmute(REALLOC_BEHIND.load(Relaxed));
            return behind(old, size);
        }
        let new = malloc(size);
        if !new.is_null() {
            let length = early::readable(old).min(size);
            core::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), length);
        }
        new
    }
}

/// Allocations during the lookup of the real functions.
mod early {
    use super::*;

    const ROOM: usize = 64 << 10;

    #[repr(C, align(4096))]
    struct Buffer(core::cell::UnsafeCell<[u8; ROOM]>);
    // SAFETY: allocated in parts that do not overlap.
    unsafe impl Sync for Buffer {}

    static BUFFER: Buffer = Buffer(core::cell::UnsafeCell::new([0; ROOM]));
    static USED: AtomicUsize = AtomicUsize::new(0);

    pub fn was_used() -> bool {
        USED.load(Relaxed) != 0
    }

    pub fn owns(block: *mut c_void) -> bool {
        (block as usize).wrapping_sub(BUFFER.0.get() as usize) < ROOM
    }

    /// Returns the bytes from `block` to the end of the buffer.
    pub fn readable(block: *mut c_void) -> usize {
        (BUFFER.0.get() as usize)
            .wrapping_add(ROOM)
            .wrapping_sub(block as usize)
    }

    pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut c_void {
        let alignment = alignment.max(16);
        if size > ROOM || alignment > os::PAGE {
            return NOTHING;
        }
        // Reserve the worst case, so that one addition is enough.
        let start = USED.fetch_add(size + alignment, Relaxed);
        let aligned = (start + alignment - 1) & !(alignment - 1);
        if aligned + size > ROOM {
            USED.fetch_sub(size + alignment, Relaxed);
            return NOTHING;
        }
        // SAFETY: inside the buffer.
        unsafe { BUFFER.0.get().cast::<u8>().add(aligned).cast() }
    }

    pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        unsafe { memalign(16, size) }
    }

    pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
        unsafe { memalign(os::PAGE, size) }
    }

    pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        match count.checked_mul(size) {
            Some(bytes) => unsafe { memalign(16, bytes) },
            None => NOTHING,
        }
    }

    pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
        unsafe {
            let new = memalign(16, size);
            if !new.is_null() && owns(old) {
                let length = readable(old).min(size);
                core::ptr::copy(old.cast::<u8>(), new.cast::<u8>(), length);
            }
            new
        }
    }

    pub unsafe extern "C" fn free(_: *mut c_void) {}

    pub unsafe extern "C" fn posix_memalign(
        place: *mut *mut c_void,
        alignment: usize,
        size: usize,
    ) -> c_int {
        unsafe {
            let block = memalign(alignment, size);
            if block.is_null() {
                return libc::ENOMEM;
            }
            *place = block;
            0
        }
    }

    pub unsafe extern "C" fn mmap(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void {
        unsafe {
            libc::syscall(
                libc::SYS_mmap,
                address,
                length,
                protection as i64,
                flags as i64,
                fd as i64,
                offset,
            ) as *mut c_void
        }
    }

    pub unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
        unsafe { libc::syscall(libc::SYS_munmap, address, length) as c_int }
    }

    pub unsafe extern "C" fn mremap(
        old: *mut c_void,
        old_length: usize,
        length: usize,
        flags: c_int,
        new: *mut c_void,
    ) -> *mut c_void {
        os::remap(old as usize, old_length, length, flags, new as usize) as *mut c_void
    }

    pub unsafe extern "C" fn prctl(
        option: c_int,
        second: usize,
        third: usize,
        fourth: usize,
        fifth: usize,
    ) -> c_int {
        let option = option as usize;
        unsafe { syscall(libc::SYS_prctl, option, second, third, fourth, fifth, 0) as c_int }
    }

    /// Fallback for the C library's function of this name.
    pub unsafe extern "C" fn syscall(
        number: c_long,
        first: usize,
        second: usize,
        third: usize,
        fourth: usize,
        fifth: usize,
        sixth: usize,
    ) -> c_long {
        let result: c_long;
        // SAFETY: the kernel's calling convention; the caller is responsible for the effects.
        unsafe {
            core::arch::asm!(
                "syscall",
                inlateout("rax") number => result,
                in("rdi") first,
                in("rsi") second,
                in("rdx") third,
                in("r10") fourth,
                in("r8") fifth,
                in("r9") sixth,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        // The kernel returns errors as the last 4095 values.
        if !(-4095..0).contains(&result) {
            return result;
        }
        // SAFETY: the location is valid for the life of the thread.
        unsafe { *libc::__errno_location() = -result as c_int };
        -1
    }

    pub unsafe extern "C" fn pthread_create(
        _: *mut c_void,
        _: *const c_void,
        _: usize,
        _: *mut c_void,
    ) -> c_int {
        libc::EAGAIN
    }
}
