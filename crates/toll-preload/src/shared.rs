// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared memory: anonymous mappings, memfds and files on tmpfs.
//!
//! A huge page fits only where address and offset agree modulo 2 MiB. The kernel cares for that
//! only if its own setting (`shmem_enabled`, `huge=` of the mount) allows huge pages, so a new
//! mapping is moved before the program learns its address. Where the setting allows none, a planned
//! region is collapsed right away: one page of it is populated for that. The parent collapses
//! regions of files, which have content already.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::*};

use toll_wire::REGION;
use toll_wire::advice::HUGE;

use crate::morsels;
use crate::os::{self, Errno, rounded};
use crate::plan::Plan;
use crate::regions::{self, Range};

const COLLAPSE: c_int = libc::MADV_COLLAPSE;
/// Linux 5.14; an error instead of a signal where there is no memory.
const POPULATE_READ: c_int = libc::MADV_POPULATE_READ;
const FIXED: c_int = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;
const TYPE: c_int = 0xf;

static FILES: AtomicBool = AtomicBool::new(false);

/// Called once, before the hooks are enabled.
pub fn start(plan: &Plan) {
    FILES.store(plan.advises_all() || plan.wants_shared(), Relaxed);
}

/// Whether mappings of files are inspected.
#[inline(always)]
pub fn any() -> bool {
    FILES.load(Relaxed)
}

/// The program's request for a mapping.
#[derive(Clone, Copy)]
pub struct Request {
    pub address: usize,
    pub length: usize,
    pub flags: c_int,
    pub offset: i64,
}

impl Request {
    /// Whether the mapping is shared.
    pub fn is_shared(&self) -> bool {
        matches!(
            self.flags & TYPE,
            libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE
        )
    }

    /// Whether the kernel chose the address, of memory in which a huge page fits. Not after the
    /// program has installed a filter, which may forbid the calls that it takes.
    fn may_move(&self) -> bool {
        if morsels::is_confined() {
            return false;
        }
        let is_free = self.address == 0 && self.flags & (FIXED | libc::MAP_HUGETLB) == 0;
        is_free && self.is_shared() && self.length >= REGION as usize
    }
}

/// Handles a new mapping of a file: returns its address.
#[cold]
#[inline(never)]
pub fn file_mapped(mapping: usize, fd: c_int, request: &Request) -> usize {
    let _errno = Errno::save();
    match request.may_move() && is_in_memory(fd) {
        true => aligned(mapping, request),
        false => mapping,
    }
}

fn is_in_memory(fd: c_int) -> bool {
    // SAFETY: all zeroes is a valid `statfs`, which is only written to.
    unsafe {
        let mut state: libc::statfs = core::mem::zeroed();
        libc::fstatfs(fd, &mut state) == 0 && state.f_type == libc::TMPFS_MAGIC
    }
}

/// Moves a new mapping to where its huge pages fit. Returns its address: the old one if the kernel
/// refuses.
pub fn aligned(mapping: usize, request: &Request) -> usize {
    let region = REGION as usize;
    let offset = request.offset as usize % region;
    if !request.may_move() || mapping % region == offset {
        return mapping;
    }
    let length = rounded(request.length);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let Some(room) = length
        .checked_add(2 * region)
        .and_then(|room| Some((os::map(0, room, libc::PROT_NONE, flags, -1)?, room)))
    else {
        return mapping;
    };
    let target = room.0.next_multiple_of(region) + offset;
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let moved = os::remap(mapping, length, length, flags, target) != -1;
    let (from, to) = match moved {
        true => (target, target + length),
        false => (room.0, room.0),
    };
    for (start, end) in [(room.0, from), (to, room.0 + room.1)] {
        if start < end {
            os::unmap(start, end - start);
        }
    }
    if moved { target } else { mapping }
}

/// Makes the planned regions of new shared memory huge, where advice alone does not.
pub fn collapse(plan: &Plan, rule: u32, block: Range) {
    regions::planned(block, plan.intervals(rule, HUGE), |range| {
        let mut region = range.start.next_multiple_of(REGION);
        while region + REGION <= range.end {
            make_huge(region as usize);
            region += REGION;
        }
    });
}

fn make_huge(region: usize) {
    let end = region + REGION as usize;
    if os::advise(region, region + os::PAGE, POPULATE_READ) {
        os::advise(region, end, COLLAPSE);
    }
}
