// SPDX-License-Identifier: MIT OR Apache-2.0
//! Program text in huge pages.
//!
//! Where the kernel can collapse the pages of the file, it does (tmpfs, or a kernel with
//! CONFIG_READ_ONLY_THP_FOR_FS). Elsewhere the text is copied to anonymous memory, which replaces
//! it: by one mremap, which is atomic for every thread, called from this library's own code. The
//! content is the same, and so is the protection.
//!
//! A text with private pages is left alone: a debugger or a probe has set breakpoints there, which
//! the kernel would no longer find, or the linker has relocated it.

use core::ffi::{c_int, c_void};

use toll_wire::REGION;

use crate::modules::{self, Owner};
use crate::os::{self, File, PAGE};
use crate::plan::Plan;

const COLLAPSE: c_int = libc::MADV_COLLAPSE;
const LENGTH: usize = REGION as usize;
/// Entries of the page map that are read at once.
const ENTRIES: usize = 512;
/// Bits of an entry: present, and a page of a file (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const OF_FILE: u64 = 1 << 61;

/// Acts on the planned modules that are loaded now. Called once.
pub fn start(plan: &Plan) {
    // The simulator runs other code than the program's.
    if os::variable(toll_wire::variables::SIM).is_some() {
        return;
    }
    let plan = core::ptr::from_ref(plan).cast_mut().cast();
    // SAFETY: the callback gets the plan back.
    unsafe { libc::dl_iterate_phdr(Some(visit), plan) };
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, plan: *mut c_void) -> c_int {
    // SAFETY: the linker passes valid headers, and `start` the plan.
    let (info, plan) = unsafe { (&*info, &*plan.cast::<Plan>()) };
    // Segments with gaps between them are looked up one by one, and the first one has the build-id.
    if !is_wanted(plan, info.dlpi_phdr as usize) {
        return 0;
    }
    // SAFETY: as above.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let is_text = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && header.p_flags == libc::PF_R | libc::PF_X
    };
    for header in headers.iter().filter(is_text) {
        let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        make_huge(start, start.wrapping_add(header.p_filesz as usize));
    }
    0
}

fn is_wanted(plan: &Plan, address: usize) -> bool {
    modules::find(address)
        .is_some_and(|module| module.owner != Owner::Ourselves && plan.wants_text(module.in_plan))
}

/// Makes the whole regions of a text huge.
fn make_huge(start: usize, end: usize) {
    let (first, last) = (start.next_multiple_of(LENGTH), end / LENGTH * LENGTH);
    if first >= last || is_changed(first, last) {
        return;
    }
    if !os::advise(first, last, COLLAPSE) {
        copy(first, last - first);
    }
}

/// Whether a part of a text differs from its file, or cannot be inspected.
fn is_changed(first: usize, last: usize) -> bool {
    let Some(pagemap) = File::open(c"/proc/self/pagemap", libc::O_RDONLY) else {
        return true;
    };
    let mut entries = [0u64; ENTRIES];
    let mut at = first;
    while at < last {
        let read = pagemap.read_at(bytes_of(&mut entries), at / PAGE * size_of::<u64>());
        if read != size_of_val(&entries) || entries.iter().any(is_private) {
            return true;
        }
        at += ENTRIES * PAGE;
    }
    false
}

fn is_private(entry: &u64) -> bool {
    entry & PRESENT != 0 && entry & OF_FILE == 0
}

fn bytes_of(entries: &mut [u64; ENTRIES]) -> &mut [u8] {
    let length = size_of_val(entries);
    // SAFETY: any bytes are valid integers.
    unsafe { core::slice::from_raw_parts_mut(entries.as_mut_ptr().cast(), length) }
}

/// Replaces a range of whole regions by a copy in huge pages. On any error it stays as it is.
fn copy(first: usize, length: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let writable = libc::PROT_READ | libc::PROT_WRITE;
    let room = length + LENGTH;
    let Some(reserved) = os::map(0, room, writable, flags, -1) else {
        return;
    };
    let copy = reserved.next_multiple_of(LENGTH);
    if fill(copy, first, length) && replace(copy, length, first) {
        // The copy has left a hole.
        os::unmap(reserved, copy - reserved);
        os::unmap(copy + length, reserved + room - copy - length);
    } else {
        os::unmap(reserved, room);
    }
}

/// Copies a text into huge pages that may be executed.
fn fill(copy: usize, text: usize, length: usize) -> bool {
    os::advise(copy, copy + length, libc::MADV_HUGEPAGE);
    // SAFETY: a mapping of our own of this length, and a text segment that may be read.
    unsafe { core::ptr::copy_nonoverlapping(text as *const u8, copy as *mut u8, length) };
    // Where the settings allow no huge pages at the first touch. An error shows that none is free.
    let is_huge = os::advise(copy, copy + length, COLLAPSE);
    let executable = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: our own mapping. A policy may forbid to execute anonymous memory.
    is_huge && unsafe { libc::mprotect(copy as *mut c_void, length, executable) == 0 }
}

/// Moves the copy over the text: the C library's function may lie in the text.
fn replace(copy: usize, length: usize, text: usize) -> bool {
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
    let result: isize;
    // SAFETY: the kernel's calling convention. The text is replaced by the same bytes.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_mremap as isize => result,
            in("rdi") copy,
            in("rsi") length,
            in("rdx") length,
            in("r10") flags,
            in("r8") text,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == text as isize
}
