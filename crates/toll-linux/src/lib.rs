// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only crate that talks to Linux.
//!
//! Readers take a [`Root`], a path that stands for `/`, so that a folder of
//! fixtures can stand for a machine.
//!
//! | module | does |
//! |---|---|
//! | [`proc`] | reads `/proc/PID`: mappings, their sizes, status |
//! | [`sys`] | reads what the machine offers: THP, memory, limits, pools |
//! | [`cpu`] | names the CPU and its TLBs |
//! | [`symbols`] | build-ids, symbols and source lines of ELF files |
//! | [`calibrate`] | measures this machine's cost table |
//! | [`luf`] | reads the state of the kernel's lazy unmap flush |
//! | [`memory`] | maps, touches and frees memory of our own |
//! | [`morsel`] | keeps files in memory, in huge pages where there are any |
//! | [`events`] | the event file that the preload library writes |
//! | [`hand`] | advises memory of another process |
//! | [`watch`] | collapses regions of a process as they grow |
//! | [`refs`] | counts touched pages by Referenced bits |
//! | [`perf`] | finds out whether the CPU samples data addresses |

pub mod calibrate;
pub mod cpu;
pub mod econ;
pub mod events;
pub mod hand;
pub mod luf;
pub mod memory;
pub mod morsel;
pub mod perf;
pub mod proc;
pub mod refs;
mod root;
pub mod symbols;
pub mod sys;
pub mod watch;

pub use root::Root;
