// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab: builds stock and patched kernels, boots them side by side in emulated machines, and
//! counts what hardware would count.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the lab builds and boots kernels for x86-64 on Linux only");

mod child;
pub mod cmd;
mod counters;
pub mod error;
mod files;
pub mod guest;
pub mod kernel;
pub mod output;
mod parallel;
pub mod preset;
mod profile;
mod report;
pub mod results;
pub mod run;
pub mod scenario;
mod svg;
pub mod tap;
pub mod workspace;
