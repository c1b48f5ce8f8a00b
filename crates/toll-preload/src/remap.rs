// SPDX-License-Identifier: MIT OR Apache-2.0
//! mremap for a mapping that advice has split. The kernel resizes only what is one
//! mapping; the program knows nothing of our splits, and its mremap must work as it
//! would without us. So the pieces are moved one by one.

use core::ffi::c_int;

use crate::act::Lifted;
use crate::os::{self, PAGE};
use crate::regions::Range;

/// What the program asked for, with page-rounded lengths.
pub struct Request {
    pub old: usize,
    pub old_length: usize,
    pub length: usize,
    pub flags: c_int,
    /// With MREMAP_FIXED: where it shall be.
    pub new: usize,
}

/// Whole pages.
pub fn rounded(length: usize) -> usize {
    length.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// Resizes a split mapping; its new address, or `None` if that cannot be done.
pub fn resize(lifted: &Lifted, request: &Request) -> Option<usize> {
    let end = request.old.checked_add(request.old_length)?;
    let growth = request.length.checked_sub(request.old_length)?;
    let mut last = None;
    lifted.pieces(|piece| last = Some(piece));
    let last = last.filter(|last| last.end == end as u64)?;
    let fixed = request.flags & (libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP) != 0;
    if !fixed && grow_in_place(last, growth) {
        return Some(request.old);
    }
    if request.flags & libc::MREMAP_MAYMOVE == 0 {
        return None;
    }
    let new = if request.flags & libc::MREMAP_FIXED != 0 {
        request.new
    } else {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        os::map(0, request.length, libc::PROT_NONE, flags, -1)?
    };
    let mut moved = true;
    lifted.pieces(|piece| {
        let more = if piece == last { growth } else { 0 };
        moved = moved
            && place(
                piece,
                more,
                new + (piece.start as usize - request.old),
                request,
            );
    });
    moved.then_some(new)
}

fn grow_in_place(last: Range, growth: usize) -> bool {
    let length = (last.end - last.start) as usize;
    os::remap(last.start as usize, length, length + growth, 0, 0) != -1
}

fn place(piece: Range, more: usize, to: usize, request: &Request) -> bool {
    let length = (piece.end - piece.start) as usize;
    let flags = request.flags | libc::MREMAP_FIXED;
    os::remap(piece.start as usize, length, length + more, flags, to) != -1
}
