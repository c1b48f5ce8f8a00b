// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the parts that are not in this executable lie.
//!
//! Searched in this order:
//! 1. each folder of `$TOLLFREE_LIBDIR` (separated by colons),
//! 2. beside the executable, and in `../lib/tollfree` from there,
//! 3. in the source checkout that the executable (or cargo, in tests) sits in:
//!    `target/*/` and `plugins/user/build`,
//! 4. `${XDG_CACHE_HOME:-~/.cache}/tollfree`, where the setup puts its own QEMU,
//! 5. for programs, `$PATH`.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Result;
use toll_linux::calibrate::cache_folder;

use crate::error::UserError;

/// The library that acts inside a target.
pub const PRELOAD: &str = "libtoll_preload.so";
/// The simulator's plugin.
pub const PLUGIN: &str = "libtoll_user.so";
/// The simulator.
pub const QEMU: &str = "qemu-x86_64";

/// Finds a part by its file name.
///
/// # Errors
/// [`UserError::Missing`] says what to install and where it was looked for.
pub fn component(name: &str) -> Result<PathBuf> {
    let places = places(name);
    match places.iter().map(|p| p.join(name)).find(|p| p.is_file()) {
        Some(path) => Ok(std::path::absolute(path)?),
        None => Err(missing(name).into()),
    }
}

/// The folders to search for `name`, best first.
fn places(name: &str) -> Vec<PathBuf> {
    let mut places = folders("TOLLFREE_LIBDIR");
    if let Some(beside) = executable_folder() {
        places.extend([beside.clone(), beside.join("../lib/tollfree")]);
        places.extend(checkout(&beside).iter().flat_map(|root| built(root)));
    }
    if let Some(manifest) = env::var_os("CARGO_MANIFEST_DIR") {
        places.extend(
            checkout(Path::new(&manifest))
                .iter()
                .flat_map(|root| built(root)),
        );
    }
    places.extend(
        cache_folder()
            .into_iter()
            .flat_map(|c| [c.join("bin"), c.join("lib"), c]),
    );
    if !name.contains(".so") {
        places.extend(folders("PATH"));
    }
    places
}

fn folders(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    env::split_paths(&value)
        .filter(|p| !p.as_os_str().is_empty())
        .collect()
}

/// The folder of this executable; of a test in `deps/`, the folder above.
fn executable_folder() -> Option<PathBuf> {
    let executable = env::current_exe().ok()?;
    let folder = executable.parent()?;
    match folder.ends_with("deps") {
        true => folder.parent().map(Path::to_owned),
        false => Some(folder.to_owned()),
    }
}

/// The source checkout around `inside`, if there is one.
fn checkout(inside: &Path) -> Option<PathBuf> {
    inside
        .ancestors()
        .find(|p| p.join("crates/toll-preload/Cargo.toml").is_file())
        .map(Path::to_owned)
}

/// Where a checkout keeps what it built.
fn built(root: &Path) -> [PathBuf; 3] {
    ["target/release", "target/debug", "plugins/user/build"].map(|folder| root.join(folder))
}

fn missing(name: &str) -> UserError {
    let how = match name {
        PRELOAD => "build it with `cargo build --release -p toll-preload`",
        PLUGIN => "build it with `make -C plugins`",
        QEMU => "install QEMU's user emulation with plugins (Debian 12: `apt install qemu-user`)",
        _ => "install it",
    };
    UserError::Missing(format!(
        "{name} is missing: {how}; or name its folder in TOLLFREE_LIBDIR"
    ))
}
