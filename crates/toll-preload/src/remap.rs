// SPDX-License-Identifier: MIT OR Apache-2.0
//! mremap for a mapping that advice has split. The kernel resizes only a single mapping; the
//! program does not know of the splits, and its mremap must work as it would without them. The
//! pieces are therefore moved one by one.
//!
//! Either all of them are moved or none is. During the move the old range stays mapped, without
//! content, so that no other mapping can take an address to which a piece may have to return. It is
//! unmapped at the end.

use core::ffi::c_int;

use crate::os::{self, Errno, PAGE};
use crate::regions::Range;
use crate::resize::Lifted;

/// MREMAP_DONTUNMAP of linux/mman.h (Linux 5.7): pages move, the old mapping stays.
const DONTUNMAP: c_int = 4;
/// Reserves an address range without access.
const RESERVATION: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// The program's request, with page-rounded lengths.
pub struct Request {
    pub old: usize,
    pub old_length: usize,
    pub length: usize,
    pub flags: c_int,
    /// With MREMAP_FIXED: the requested address.
    pub new: usize,
}

impl Request {
    fn has(&self, flag: c_int) -> bool {
        self.flags & flag != 0
    }

    /// Whether the kernel would move a single mapping as requested.
    fn is_possible(&self) -> bool {
        let growth = self.length - self.old_length;
        if !self.has(libc::MREMAP_MAYMOVE) || self.has(DONTUNMAP) && growth > 0 {
            return false;
        }
        if !self.has(libc::MREMAP_FIXED) {
            return true;
        }
        let ends = (
            self.old.checked_add(self.old_length),
            self.new.checked_add(self.length),
        );
        match ends {
            (Some(old_end), Some(new_end)) => {
                self.new % PAGE == 0 && (new_end <= self.old || old_end <= self.new)
            }
            _ => false,
        }
    }
}

/// Resizes a split mapping; returns its new address, or `None` on failure: the mapping is then
/// unchanged, and `errno` is set.
pub fn resize(lifted: &Lifted, request: &Request) -> Option<usize> {
    let end = request.old.checked_add(request.old_length)?;
    let growth = request.length.checked_sub(request.old_length)?;
    let mut last = None;
    lifted.pieces(|piece| last = Some(piece));
    let last = last.filter(|last| last.end == end as u64)?;
    let stays = !request.has(libc::MREMAP_FIXED | DONTUNMAP);
    if stays && grow(last.start as usize, length_of(last), growth) {
        return Some(request.old);
    }
    if !request.is_possible() {
        return None;
    }
    Move {
        lifted,
        request,
        new: destination(request)?,
        last,
    }
    .carry_out()
}

fn length_of(piece: Range) -> usize {
    (piece.end - piece.start) as usize
}

/// Extends a mapping in place.
fn grow(address: usize, length: usize, growth: usize) -> bool {
    growth == 0 || os::remap(address, length, length.saturating_add(growth), 0, 0) != -1
}

/// Returns the target of the pieces: the requested address, or a reserved range.
fn destination(request: &Request) -> Option<usize> {
    if request.has(libc::MREMAP_FIXED) {
        return Some(request.new);
    }
    os::map(0, request.length, libc::PROT_NONE, RESERVATION, -1)
}

/// A mapping that moves.
struct Move<'a> {
    lifted: &'a Lifted,
    request: &'a Request,
    new: usize,
    last: Range,
}

impl Move<'_> {
    fn carry_out(&self) -> Option<usize> {
        let mut moved = 0;
        let mut failed = false;
        self.lifted.pieces(|piece| {
            failed = failed || !self.there(piece);
            moved += usize::from(!failed);
        });
        if failed || !self.grow_there() {
            self.undo(moved);
            return None;
        }
        if !self.request.has(DONTUNMAP) {
            os::unmap(self.request.old, self.request.old_length);
        }
        Some(self.new)
    }

    /// Returns the new address of an address.
    fn to(&self, address: u64) -> usize {
        self.new
            .wrapping_add((address as usize).wrapping_sub(self.request.old))
    }

    /// Moves a piece to its new address. Its old range stays reserved.
    fn there(&self, piece: Range) -> bool {
        let (from, to, length) = (piece.start as usize, self.to(piece.start), length_of(piece));
        if transfer(from, to, length, DONTUNMAP) {
            return true;
        }
        // An old kernel, or a limit on mappings: the old range is released and immediately reserved
        // again.
        if self.request.has(DONTUNMAP) || !transfer(from, to, length, 0) {
            return false;
        }
        let fixed = RESERVATION | libc::MAP_FIXED_NOREPLACE;
        os::map(from, length, libc::PROT_NONE, fixed, -1);
        true
    }

    /// Extends or shrinks the last piece at its new address.
    fn grow_there(&self) -> bool {
        let growth = self.request.length - self.request.old_length;
        if growth == 0 {
            return true;
        }
        os::unmap(self.to(self.last.end), growth);
        grow(self.to(self.last.start), length_of(self.last), growth)
    }

    /// Moves the first `moved` pieces back. The reserved range is unmapped first, which leaves room
    /// for the additional mappings during the move.
    fn undo(&self, moved: usize) {
        // errno holds the reason of the failure.
        let errno = Errno::save();
        let mut index = 0;
        let mut end = self.request.old as u64;
        self.lifted.pieces(|piece| {
            if index < moved {
                end = piece.end;
            }
            index += 1;
        });
        let rest = self.to(end);
        let reserved = self.new.saturating_add(self.request.length);
        if !self.request.has(libc::MREMAP_FIXED) && rest < reserved {
            os::unmap(rest, reserved - rest);
        }
        let mut index = 0;
        self.lifted.pieces(|piece| {
            if index < moved {
                let (from, to) = (self.to(piece.start), piece.start as usize);
                transfer(from, to, length_of(piece), 0);
            }
            index += 1;
        });
        drop(errno);
    }
}

fn transfer(from: usize, to: usize, length: usize, more: c_int) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED | more;
    os::remap(from, length, length, flags, to) != -1
}
