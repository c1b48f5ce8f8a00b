// SPDX-License-Identifier: MIT OR Apache-2.0
//! Binary layouts shared by `tollfree`, the preload library and the simulator's plugin. All are
//! little-endian and of fixed size, without pointers and without holes.
//!
//! | module | holds |
//! |---|---|
//! | `actions` | the *action file*: header, modules, rules, intervals, addresses, texts; read-only for the target |
//! | `events` | the *event file*: header, module table, event records; mapped shared by the target and all its children, appended with atomic counters |
//! | `served` | the *morsel file*: the files served from morsels, and how often each was; mapped shared by the target and all its children |
//! | [`recording`] | the simulator's output |
//! | [`variables`] | the environment variables that name these files |
//! | `layout` | declares structures and encodes them |
//! | `describe` | declares structures and numbers that the C header repeats |
//! | `header` | prints the C header, `plugins/user/wire.h` |
#![no_std]

#[macro_use]
mod layout;
#[macro_use]
mod describe;

mod actions;
mod events;
mod header;
pub mod recording;
mod served;
pub mod variables;

pub use actions::{
    ACTIONS_MAGIC, ActionsHeader, AddressRange, FrameMatch, Interval, Rule, Text, advice, flags,
};
pub use events::{EVENTS_MAGIC, Event, EventKind, EventsHeader, MAGIC_SYSCALL, MIN_EVENT, class};
pub use header::CHeader;
pub use layout::Value;
pub use served::{SERVED_MAGIC, SERVED_PATH, Served, ServedHeader};
pub use variables::{ENV_ACTIONS, ENV_EVENTS, ENV_SERVED, ENV_SIM};

/// Size of a base page in bytes (x86-64).
pub const PAGE: u64 = 4096;
/// Size of a region in bytes: the reach of one PMD entry (x86-64).
pub const REGION: u64 = 2 << 20;

/// Maximum number of frames of an allocation's call stack.
pub const MAX_FRAMES: usize = 4;
/// "Any" in [`Rule::ordinal`], [`Rule::thread`] and frame counts.
pub const ANY: u32 = u32::MAX;
/// Length of a path in [`Module`], bytes.
pub const MODULE_PATH: usize = 220;

layout! {
    /// A loaded object, by build-id.
    pub struct Module {
        /// Bytes of `id` in use; 0: the module has no build-id and `id` is unused.
        pub id_len: u32,
        /// GNU build-id; for a module without one, the FNV-1a 64 hash of its basename.
        pub id: [u8; 32],
        /// Path, cut at the front if it is too long, NUL-terminated.
        pub path: [u8; MODULE_PATH],
    }
}

/// Returns the part of a text before its terminating NUL.
pub fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|&byte| byte == 0).next().unwrap_or(text)
}
