// SPDX-License-Identifier: MIT OR Apache-2.0
//! The recording: the simulator's output, in a file (or memfd) that the plugin maps shared from the
//! start, so that nothing is lost if the program crashes, is killed, or closes its descriptors.
//!
//! [`HEADER_BYTES`] bytes for the [`Header`] are followed by `blocks_max` of [`Block`], then by
//! `pages_max` of [`Page`]. The file is sparse: only used parts take space. A block is a named
//! piece of the guest's memory; page `first + i` has the counts of its i-th 4 KiB page.

/// Magic of a recording.
pub const MAGIC: [u8; 8] = *b"TOLLSIM1";
/// Bytes before the first block.
pub const HEADER_BYTES: u64 = 4096;
/// Length of a path, bytes; it is NUL-terminated.
pub const PATH: usize = 192;

c_layout! {
    /// The run as a whole.
    pub struct Header as header {
        pub magic: [u8; 8],
        /// `RECORDING_HEADER`, and the sizes of a block and a page, bytes.
        pub header_size: u32,
        pub block_size: u32,
        pub page_size: u32,
        pub flags: u32,
        pub blocks_max: u64,
        pub pages_max: u64,
        /// Number in use.
        pub blocks: u64,
        pub pages: u64,
        /// Calls of the access callback: all, and while counting. Their ratio scales counts up.
        pub seen: u64,
        pub counted: u64,
        /// Accesses, walks and walks with huge pages, while counting, with or without pages.
        pub accesses: u64,
        pub walks: u64,
        pub walks_huge: u64,
        /// Counting windows.
        pub windows: u64,
        /// Accesses to addresses outside any known mapping.
        pub lost: u64,
        /// Host address minus guest address.
        pub guest_base: u64,
        pub process: u32,
        pub threads: u32,
        /// fork and execve calls of the program and its children; not simulated.
        pub forks: u32,
        pub execs: u32,
        /// The program of the last execve.
        pub exec_path: [u8; PATH],
        /// The program itself.
        pub program: [u8; PATH],
    }
}

const _: () = assert!(size_of::<Header>() as u64 <= HEADER_BYTES);

c_bits! {
    /// Bits of `header.flags`.
    pub mod flags {
        /// The program ended, and everything was counted.
        COMPLETE = 1 => RECORDING_COMPLETE,
        /// The program replaced itself by exec; the new program was not simulated.
        EXECED = 2 => RECORDING_EXECED,
        /// Blocks or page records ran out; `lost` counts accesses without a page.
        FULL = 4 => RECORDING_FULL,
    }
}

c_layout! {
    /// A named piece of the guest's memory.
    pub struct Block as block {
        /// The `block_kind`, stored last: 0 means "not written yet".
        pub kind: u32,
        pub flags: u32,
        pub event: u32,
        pub pad: u32,
        /// Guest address of its first page, and its length in bytes (whole pages).
        pub address: u64,
        pub length: u64,
        /// Index of its first page record.
        pub first: u64,
        /// Bytes from its site's start (file offset, offset in the heap) to its first page.
        pub offset: u64,
        /// For a file: path, cut at the front if too long.
        pub path: [u8; PATH],
        /// The mapping that contained it at its start (0: none that is counted), packed by
        /// `MAPPING`, and its offset there.
        pub mapping: u64,
        pub mapping_at: u64,
    }
}

c_enum! {
    /// Kind of a block.
    pub enum BlockKind as block_kind {
        /// An allocation event of the preload library: `event` is its index.
        Event = 1 => BLOCK_EVENT,
        /// Other anonymous memory.
        Anonymous = 2 => BLOCK_ANONYMOUS,
        Heap = 3 => BLOCK_HEAP,
        Stack = 4 => BLOCK_STACK,
        /// A file mapping, or the zeroed memory that follows a program's data.
        File = 5 => BLOCK_FILE,
    }
}

c_bits! {
    /// Bits of `block.flags`.
    pub mod block {
        /// Unmapped or freed before the end.
        FREED = 1 => BLOCK_FREED,
        /// Represents more than one block of the same address and size, one after the other.
        REUSED = 2 => BLOCK_REUSED,
        /// `page.flags` of all pages tell which were present when the block ended.
        SCANNED = 4 => BLOCK_SCANNED,
        /// A file in memory (tmpfs, memfd) that is mapped shared and writable.
        SHARED = 8 => BLOCK_SHARED,
    }
}

/// A private anonymous mapping, by the properties that identify it in any run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Length class: the largest power of two not above its length.
    pub class: u8,
    pub protection: u8,
    /// Number of earlier mappings of this class and protection.
    pub ordinal: u32,
}

impl Mapping {
    pub(crate) const KNOWN: u64 = 1 << 63;
    pub(crate) const CLASS: u32 = 40;
    pub(crate) const PROTECTION: u32 = 32;

    /// Unpacks [`Block::mapping`].
    pub fn unpack(packed: u64) -> Option<Mapping> {
        (packed & Mapping::KNOWN != 0).then_some(Mapping {
            class: (packed >> Mapping::CLASS) as u8,
            protection: (packed >> Mapping::PROTECTION) as u8,
            ordinal: packed as u32,
        })
    }
}

c_layout! {
    /// Counts of a 4 KiB page.
    pub struct Page as page {
        /// Counted accesses, and the misses of each level among them.
        pub accesses: u64,
        /// Native page sizes: L1 misses that hit L2; walks.
        pub l2_hits: u64,
        pub walks: u64,
        /// Walks if every eligible region were huge.
        pub walks_huge: u64,
        /// Sum over 4 KiB walks of 256 * log2(reuse distance of the entry's line, in bytes of
        /// data).
        pub reuse_sum: u64,
        pub reuse_count: u32,
        /// Walks with an address known to depend on loads, and known not to.
        pub dependent: u32,
        pub independent: u32,
        pub flags: u32,
        /// L2 hits that would hit L1 if every eligible region were huge.
        pub l2_spared: u64,
    }
}

c_bits! {
    /// Bits of `page.flags`.
    pub mod page {
        /// Touched (seen by the model, or present at the block's end).
        TOUCHED = 1 => PAGE_TOUCHED,
        /// Backed by a huge page with the page sizes of a native run.
        HUGE = 2 => PAGE_HUGE,
        /// Could be backed by a huge page.
        ELIGIBLE = 4 => PAGE_ELIGIBLE,
    }
}
