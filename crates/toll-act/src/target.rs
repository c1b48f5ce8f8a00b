// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program so that neither it nor its caller notices tollfree.
//!
//! - Standard streams and every other descriptor are inherited unchanged; our own are CLOEXEC.
//! - Signals sent to tollfree alone are forwarded. Those from the terminal reach the target through
//!   its process group. A signal that a process sends to the whole group cannot be distinguished
//!   from one for tollfree alone, and may arrive twice.
//! - When the target stops at the terminal (Ctrl-Z), tollfree stops too, so that the shell notices;
//!   `fg` continues both.
//! - If tollfree is killed, the target is killed too (PR_SET_PDEATHSIG), as if the program itself
//!   had been killed. Its children and daemons are not.
//! - [`end_like`] makes tollfree die of the signal that the target died of.
//!
//! | file | holds |
//! |---|---|
//! | `launch` | the command line, the environment and the streams of a target |
//! | `exec` | what the child does between fork and exec |
//! | `child` | waits for a running target, and forwards signals |
//! | `huge` | samples the huge-page-backed memory of a process tree |

mod child;
mod exec;
mod huge;
mod launch;

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

pub use self::child::{Child, Outcome};
pub use self::huge::{Sampled, Sampling, tree_resident};
pub use self::launch::Launch;
use crate::signals;

/// Ends tollfree as the target ended: with its exit code, or by its signal (without a second core
/// file). Drop temporary files before.
pub fn end_like(status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else {
        return ExitCode::from(status.code().unwrap_or(1) as u8);
    };
    // SAFETY: PR_SET_DUMPABLE takes no pointer.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    signals::default_action(signal);
    // Reached only if the signal does not end this process, which SIG_DFL does for all but init.
    ExitCode::from(128u8.wrapping_add(signal as u8))
}
