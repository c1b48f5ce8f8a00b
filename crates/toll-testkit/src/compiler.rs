// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C programs that tests use as targets.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Compiles a C file. Returns false, with a message, without a C compiler.
pub fn compile(source: &Path, program: &Path, options: &[&str]) -> bool {
    match cc(source, program, options, Stdio::inherit()) {
        Ok(status) => {
            assert!(status.success(), "{} does not compile", source.display());
            true
        }
        Err(error) => {
            eprintln!("skipped: no C compiler: {error}");
            false
        }
    }
}

/// Compiles C source text, which is written next to the program; otherwise as [`compile`].
pub fn compile_text(text: &str, program: &Path, options: &[&str]) -> bool {
    let source = program.with_extension("c");
    fs::write(&source, text).unwrap();
    compile(&source, program, options)
}

/// Compiles a C file with an option that not every compiler supports: static libraries and
/// sanitizers are separate packages. Returns false, with a message, if it fails.
pub fn compile_where_possible(source: &Path, program: &Path, options: &[&str]) -> bool {
    let built = cc(source, program, options, Stdio::null());
    let works = built.is_ok_and(|status| status.success());
    if !works {
        eprintln!("skipped: cc {options:?} does not work here");
    }
    works
}

fn cc(
    source: &Path,
    program: &Path,
    options: &[&str],
    complaints: Stdio,
) -> io::Result<ExitStatus> {
    let mut cc = Command::new("cc");
    cc.arg("-o").args([program, source]).args(options);
    cc.stderr(complaints).status()
}
