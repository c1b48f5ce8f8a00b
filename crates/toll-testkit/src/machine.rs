// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties of the machine that runs the tests.

use toll_linux::Root;
use toll_linux::sys::{Mode, Thp};

/// Whether memory becomes huge by advice here, and only by advice; prints a message if not.
pub fn thp_is_madvise() -> bool {
    let mode = Thp::read(&Root::system()).map(|thp| thp.mode);
    if mode != Some(Mode::Madvise) {
        eprintln!("skipped: THP is {mode:?}");
    }
    mode == Some(Mode::Madvise)
}

/// Whether memory becomes huge by advice here; prints a message if not.
pub fn has_huge_pages() -> bool {
    let mode = Thp::read(&Root::system()).map(|thp| thp.mode);
    let has = mode.is_some_and(|mode| mode != Mode::Never);
    if !has {
        eprintln!("skipped: THP is {mode:?}");
    }
    has
}

pub fn is_root() -> bool {
    // SAFETY: no argument.
    unsafe { libc::geteuid() == 0 }
}

/// Whether a program is in `PATH`.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}
