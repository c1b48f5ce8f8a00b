// SPDX-License-Identifier: MIT OR Apache-2.0
//! The built program and its preload library, which are next to the test programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Returns the directory of the built programs, target/PROFILE.
fn built() -> PathBuf {
    let test = env::current_exe().unwrap();
    let built = test.ancestors().nth(2).expect("PROFILE/deps/TEST");
    built.to_owned()
}

/// Returns the program `tollfree`, which cargo builds for the integration tests of its crate.
pub fn tollfree() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| built().join("tollfree"))
}

/// Returns the preload library, which cargo does not build for tests. Builds it once.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let built = built();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "toll-preload"]);
        build.arg("--target-dir").arg(built.parent().unwrap());
        if built.ends_with("release") {
            build.arg("--release");
        }
        let is_built = build.status().is_ok_and(|status| status.success());
        let library = built.join("libtoll_preload.so");
        // A user other than the one of the build may have no cargo.
        assert!(is_built || library.exists());
        library
    })
}
