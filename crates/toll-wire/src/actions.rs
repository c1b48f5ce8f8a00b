// SPDX-License-Identifier: MIT OR Apache-2.0
//! The action file: the header, followed by the sections modules, rules, intervals, addresses,
//! texts.

use crate::MAX_FRAMES;

/// Magic of an action file.
pub const ACTIONS_MAGIC: [u8; 8] = *b"TOLLACT1";

layout! {
    /// Action file header. Sections follow in the order modules, rules, intervals, addresses,
    /// texts.
    pub struct ActionsHeader {
        pub magic: [u8; 8],
        pub modules: u32,
        pub rules: u32,
        pub intervals: u32,
        /// Bits of `flags`.
        pub flags: u32,
        /// Number of `AddressRange`s.
        pub addresses: u32,
        /// Number of `Text`s.
        pub texts: u32,
    }
}

/// Bits of [`ActionsHeader::flags`].
pub mod flags {
    /// Advise every mapping and block of at least 2 MiB (the variant "all"); rules are ignored.
    pub const ALL: u32 = 1;
    /// Apply MADV_NOHUGEPAGE to planned losers (only if THP is "always").
    pub const NOHUGE: u32 = 2;
    /// Back the ranges of the section `addresses` from the hugetlb pool: immediately after the
    /// program's own private anonymous mmap returns (untouched memory), map MAP_HUGETLB | MAP_FIXED
    /// over them.
    pub const HUGETLB: u32 = 4;
    /// Move new shared mappings of files in memory to addresses at which their huge pages fit, so
    /// that the parent can collapse them.
    pub const SHARED: u32 = 8;
}

layout! {
    /// A range of return addresses in a module.
    pub struct FrameMatch {
        /// Index into the modules.
        pub module: u32,
        pub _pad: u32,
        /// Offsets `low..=high` match.
        pub low: u64,
        pub high: u64,
    }
}

layout! {
    /// The allocation events that a set of intervals applies to. Rules are tried in order; the
    /// first match wins, so exact rules precede class rules of the same site.
    pub struct Rule {
        /// Frames that must match, innermost first; `frames_used` of them are valid. 0 matches
        /// every event.
        pub frames: [FrameMatch; MAX_FRAMES],
        pub frames_used: u32,
        /// Ordinal of the event at its site, class and thread, or `ANY`.
        pub ordinal: u32,
        /// Creation ordinal of the thread, or `ANY`.
        pub thread: u32,
        pub _pad: u32,
        /// Lengths `low..=high` match.
        pub length_low: u64,
        pub length_high: u64,
        /// Intervals, relative to the block's start: `first..first + count`.
        pub first: u32,
        pub count: u32,
    }
}

layout! {
    /// A byte interval of a block and the advice for its regions.
    pub struct Interval {
        pub start: u64,
        /// Exclusive; `u64::MAX` is the end of the block.
        pub end: u64,
        /// One of `advice`.
        pub advice: u32,
        pub _pad: u32,
    }
}

/// Values of [`Interval::advice`].
pub mod advice {
    /// MADV_HUGEPAGE.
    pub const HUGE: u32 = 1;
    /// MADV_NOHUGEPAGE; only with [`super::flags::NOHUGE`].
    pub const NO_HUGE: u32 = 2;
    /// As [`HUGE`]; a block without a region of its own fills regions together with its neighbours
    /// of the same rules.
    pub const TOGETHER: u32 = 3;
}

layout! {
    /// A range of fixed addresses (as in `largepages.txt`), advised huge as soon as the program
    /// maps anonymous memory there. Sorted, disjoint, both ends multiples of 2 MiB.
    pub struct AddressRange {
        pub start: u64,
        /// Exclusive.
        pub end: u64,
    }
}

layout! {
    /// A module with text to hold in huge pages.
    pub struct Text {
        /// Index into the modules.
        pub module: u32,
        pub _pad: u32,
    }
}
