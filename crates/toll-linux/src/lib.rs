// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to Linux: reads its state and advises memory.
//!
//! Readers take a [`Root`], a path used in place of `/`, so that a directory of fixtures can
//! represent a machine.
//!
//! | module | does |
//! |---|---|
//! | [`proc`] | reads `/proc/PID`: mappings, their sizes, status |
//! | [`sys`] | reads what the machine offers: THP, memory, limits, pools |
//! | [`bpf`] | counts and times in the kernel, by BPF programs |
//! | [`counters`] | reads what `stat` shows: counters of a process tree, a control group or the machine |
//! | [`cpu`] | names the CPU and its TLBs |
//! | [`symbols`] | build-ids, symbols and source lines of ELF files |
//! | [`calibrate`] | measures this machine's cost table |
//! | [`luf`] | reads the state of the kernel's lazy unmap flush |
//! | [`mappings`] | reads what decides about huge pages in the mappings of a process |
//! | [`memory`] | maps, touches and frees this process's own memory |
//! | [`morsel`] | keeps files in memory, in huge pages where available |
//! | [`econ`] | profiles, decisions and costs of the kernel's estimator |
//! | [`events`] | the event file that the preload library writes |
//! | [`remote`] | advises memory of another process |
//! | [`watch`] | collapses regions of a process as they grow |
//! | [`accessed`] | counts touched pages by accessed bits |
//! | [`perf`] | probes whether the CPU samples data addresses |

pub mod accessed;
pub mod bpf;
pub mod calibrate;
pub mod counters;
pub mod cpu;
pub mod econ;
pub mod events;
pub mod luf;
pub mod mappings;
pub mod memory;
pub mod morsel;
pub mod perf;
pub mod proc;
pub mod remote;
mod root;
pub mod symbols;
pub mod sys;
pub mod watch;

pub use root::Root;
