// SPDX-License-Identifier: MIT OR Apache-2.0
//! Advises memory of another process.
//!
//! `process_madvise` needs CAP_SYS_NICE, and CAP_SYS_PTRACE for processes of other users and under
//! Docker's seccomp filter. It supports MADV_COLLAPSE and MADV_COLD. All other advice is given in
//! one short ptrace stop with an injected madvise.

mod advice;
mod gate;
mod handle;
mod inject;
mod interrupted;
mod permission;
mod process;
mod signals;
mod threads;
mod tracee;
mod vdso;

pub use advice::{Advice, RemoteError};
pub use gate::{Call, Gate, gate};
pub use handle::{Reach, RemoteProcess};
pub use process::drain;
