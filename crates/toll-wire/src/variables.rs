// SPDX-License-Identifier: MIT OR Apache-2.0
//! Environment variables: each name as a C string, for the preload library, and as text.

use core::ffi::CStr;

/// Path of the action file.
pub const ACTIONS: &CStr = c"TOLLFREE_ACTIONS";
/// Path of the event file.
pub const EVENTS: &CStr = c"TOLLFREE_EVENTS";
/// Path of the morsel file.
pub const SERVED: &CStr = c"TOLLFREE_SERVED";
/// Set only inside the simulator: announce each event by [`crate::MAGIC_SYSCALL`].
pub const SIM: &CStr = c"TOLLFREE_SIM";

/// [`ACTIONS`] as text.
pub const ENV_ACTIONS: &str = text(ACTIONS);
/// [`EVENTS`] as text.
pub const ENV_EVENTS: &str = text(EVENTS);
/// [`SERVED`] as text.
pub const ENV_SERVED: &str = text(SERVED);
/// [`SIM`] as text.
pub const ENV_SIM: &str = text(SIM);

const fn text(name: &'static CStr) -> &'static str {
    match name.to_str() {
        Ok(text) => text,
        Err(_) => panic!("a name is ASCII"),
    }
}
