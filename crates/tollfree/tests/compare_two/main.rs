// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tollfree compare` of two commands, on real programs. The commands differ by factors of ten, or
//! by numbers that they print: these tests hold at any speed.

mod failures;
mod markdown;
mod results;
mod servers;

use std::process::Output;

use toll_testkit::Directory;

/// Runs `tollfree --json compare` in a directory.
fn compare(directory: &Directory, arguments: &[&str]) -> Output {
    let words = [&["--json", "compare"], arguments].concat();
    directory.run(&words)
}
