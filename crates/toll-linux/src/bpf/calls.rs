// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls on maps that aya has no function for: reading a whole hash map at once, and writing
//! to a map of any kind.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const UPDATE: i32 = 2;
const DELETE: i32 = 3;
const LOOKUP_BATCH: i32 = 24;
/// Entries that are read by one call. The kernel needs room for a whole bucket of the map.
const BATCH: u32 = 4096;

/// `union bpf_attr` for a command on one element.
#[derive(Default)]
#[repr(C)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr` for a command on many.
#[derive(Default)]
#[repr(C)]
struct Batch {
    from: u64,
    next: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    element_flags: u64,
    flags: u64,
}

fn address<T>(place: *const T) -> u64 {
    place as usize as u64
}

/// # Safety
/// The attribute has the layout of the command, and its addresses are valid for it.
unsafe fn bpf<T>(command: i32, attribute: &mut T) -> io::Result<()> {
    let place: *mut T = attribute;
    // SAFETY: the caller's promise.
    match unsafe { libc::syscall(libc::SYS_bpf, command, place, size_of::<T>()) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes an element. `K` and `V` have the sizes of the map's keys and values.
pub(super) fn update<K: Copy, V: Copy>(map: BorrowedFd, key: K, value: V) -> io::Result<()> {
    let mut element = Element {
        map: map.as_raw_fd() as u32,
        key: address(&key),
        value: address(&value),
        ..Element::default()
    };
    // SAFETY: key and value outlive the call.
    unsafe { bpf(UPDATE, &mut element) }
}

/// Removes an element.
pub(super) fn delete<K: Copy>(map: BorrowedFd, key: K) -> io::Result<()> {
    let mut element = Element {
        map: map.as_raw_fd() as u32,
        key: address(&key),
        ..Element::default()
    };
    // SAFETY: the key outlives the call.
    unsafe { bpf(DELETE, &mut element) }
}

/// Reads all elements of a hash map.
pub(super) fn all<K: Copy + Default, V: Copy + Default>(
    map: BorrowedFd,
) -> io::Result<Vec<(K, V)>> {
    let mut found = Vec::new();
    let mut keys = vec![K::default(); BATCH as usize];
    let mut values = vec![V::default(); BATCH as usize];
    let mut position: Option<u32> = None;
    loop {
        let mut next = 0u32;
        let mut batch = Batch {
            from: position.as_ref().map_or(0, |position| address(position)),
            next: address(&raw mut next),
            keys: address(keys.as_mut_ptr()),
            values: address(values.as_mut_ptr()),
            count: BATCH,
            map: map.as_raw_fd() as u32,
            ..Batch::default()
        };
        // SAFETY: both buffers have room for `count` elements, and the positions outlive the call.
        let read = unsafe { bpf(LOOKUP_BATCH, &mut batch) };
        let is_last = match read {
            Ok(()) => false,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
            Err(error) => return Err(error),
        };
        let count = batch.count as usize;
        found.extend(keys.iter().copied().zip(values.iter().copied()).take(count));
        if is_last {
            return Ok(found);
        }
        position = Some(next);
    }
}
