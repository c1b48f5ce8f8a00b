// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of tests/data/memory.c in a container.

use std::path::Path;

use toll_testkit::{Directory, compiler};

/// Compiles the program; `false`, with a message, if that is not possible here.
pub fn build(directory: &Directory) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/memory.c");
    compiler::compile(&source, &directory.path("memory"), &["-O1"])
}

/// A shell line that starts the program with memory of a kind, runs `then` with its `$pid` once it
/// has the memory, and ends it.
pub fn line(kind: &str, then: &str) -> String {
    format!(
        "rm -f input address; mkfifo input || exit; exec 4<>input; ./memory {kind} <&4 >address & pid=$!
        until test -s address; do sleep 0.02; done
        {then}; status=$?; kill $pid; exit $status"
    )
}
