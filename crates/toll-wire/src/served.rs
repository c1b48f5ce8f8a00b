// SPDX-License-Identifier: MIT OR Apache-2.0
//! The morsel file: the header, followed by a record for each served file.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Magic of a morsel file.
pub const SERVED_MAGIC: [u8; 8] = *b"TOLLMSL2";
/// Length of a path in [`Served`], bytes.
pub const SERVED_PATH: usize = 4096;

/// Morsel file header. [`ServedHeader::count`] records of [`Served`] follow.
#[repr(C)]
#[derive(Debug)]
pub struct ServedHeader {
    pub magic: [u8; 8],
    pub count: u32,
    /// File mappings that were not inspected because the program had installed a filter.
    pub confined: AtomicU32,
}

/// A file with read-only mappings that are served from a morsel, while the file is
/// unchanged since the copy.
#[repr(C)]
#[derive(Debug)]
pub struct Served {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    /// Time of the last modification: seconds and nanoseconds.
    pub seconds: i64,
    pub nanoseconds: u64,
    /// Time of the last change: seconds and nanoseconds.
    pub changed_seconds: i64,
    pub changed_nanoseconds: u64,
    /// The morsel's own device and inode: another file at its path is not mapped.
    pub morsel_device: u64,
    pub morsel_inode: u64,
    /// Alignment of the offsets and ends of its mappings, bytes.
    pub page: u64,
    /// Number of served mappings, and their bytes.
    pub mappings: AtomicU64,
    pub bytes: AtomicU64,
    /// Number of mappings that were left to the file.
    pub left: AtomicU64,
    /// Path of the morsel, NUL-terminated.
    pub path: [u8; SERVED_PATH],
}
