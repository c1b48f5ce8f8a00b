// SPDX-License-Identifier: MIT OR Apache-2.0
//! The preload library, which `cargo test -p tollfree` does not build by itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds the library next to tollfree, once.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let beside = Path::new(env!("CARGO_BIN_EXE_tollfree")).parent().unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "toll-preload"]);
        build.arg("--target-dir").arg(beside.parent().unwrap());
        if beside.ends_with("release") {
            build.arg("--release");
        }
        let built = build.status().is_ok_and(|status| status.success());
        let library = beside.join("libtoll_preload.so");
        // A user other than the one of the build may have no cargo.
        assert!(built || library.exists());
        library
    })
}
