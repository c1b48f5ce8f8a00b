// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the components that are not part of this executable.
//!
//! Searched in this order:
//! 1. each directory of `$TOLLFREE_LIBDIR` (separated by colons),
//! 2. the directory of the executable, and `../lib/tollfree` from there,
//! 3. the source checkout that contains the executable in its `target` directory (in debug builds
//!    also the one of `$CARGO_MANIFEST_DIR`): `target/*/` and `plugins/user/build`,
//! 4. `${XDG_CACHE_HOME:-~/.cache}/tollfree`, where the setup installs its own QEMU,
//! 5. for programs, `$PATH`.
//!
//! Root runs no component that another user could have placed there: see [`Trusted`].

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use toll_linux::Root;
use toll_linux::calibrate::cache_directory;

use crate::error::UserError;

/// The preload library, which acts inside a target.
pub const PRELOAD: &str = "libtoll_preload.so";
/// The simulator's plugin, once for each version of QEMU's plugin interface that it declares
/// (`plugins/user/interface.h`).
pub const PLUGINS: [&str; 3] = ["libtoll_user.so", "libtoll_user-2.so", "libtoll_user-7.so"];
/// The simulator.
pub const QEMU: &str = "qemu-x86_64";
/// Its versions with a plugin interface for which there is a plugin.
pub const QEMU_VERSIONS: &str = "6.0 to 11.x";

/// Finds a component by its file name.
///
/// # Errors
/// [`UserError::Missing`] with what to install, or with the file that root does not run and why.
pub fn component(name: &str) -> Result<PathBuf> {
    let trusted = Trusted::now();
    let mut refused = None;
    for path in places(name, BUILD).iter().map(|p| p.join(name)) {
        match trusted.objection(&path) {
            None if path.is_file() => return Ok(std::path::absolute(path)?),
            Some(why) => refused = refused.or(Some(why)),
            None => {}
        }
    }
    match refused {
        Some(why) => Err(UserError::Missing(why).into()),
        None => Err(missing(name).into()),
    }
}

/// How this executable was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    /// For developers, under cargo.
    Debug,
    /// For users: the build environment is ignored.
    Release,
}

const BUILD: Build = match cfg!(debug_assertions) {
    true => Build::Debug,
    false => Build::Release,
};

/// The directories to search for `name`, best first.
fn places(name: &str, build: Build) -> Vec<PathBuf> {
    let mut places = directories("TOLLFREE_LIBDIR");
    if let Some(beside) = executable_directory() {
        places.extend([beside.clone(), beside.join("../lib/tollfree")]);
        places.extend(own_checkout(&beside).iter().flat_map(|root| built(root)));
    }
    if let (Build::Debug, Some(manifest)) = (build, env::var_os("CARGO_MANIFEST_DIR")) {
        let root = Path::new(&manifest).ancestors().find(|p| is_checkout(p));
        places.extend(root.into_iter().flat_map(built));
    }
    places.extend(
        cache_directory()
            .into_iter()
            .flat_map(|c| [c.join("bin"), c.join("lib"), c]),
    );
    if !name.contains(".so") {
        places.extend(directories("PATH"));
    }
    places
}

/// The owners of files that this process may run. Root can run any file, and under `sudo -E` the
/// environment names a user's directories.
#[derive(Debug)]
enum Trusted {
    /// Not root: a component runs with this user's rights only.
    Everybody,
    /// Root: files of root, of the calling user, and of the owner of this executable.
    Only([u32; 3]),
}

impl Trusted {
    fn now() -> Trusted {
        // SAFETY: neither call takes an argument, or can fail.
        let (effective, real) = unsafe { (libc::geteuid(), libc::getuid()) };
        let executable = env::current_exe().and_then(fs::metadata);
        match effective {
            0 => Trusted::Only([0, real, executable.map_or(0, |ours| ours.uid())]),
            _ => Trusted::Everybody,
        }
    }

    /// Why an existing file must not be run; `None` also if there is none. A directory that others
    /// can write to counts like a writable file.
    fn objection(&self, path: &Path) -> Option<String> {
        let Trusted::Only(owners) = self else {
            return None;
        };
        let path = path.canonicalize().ok()?;
        let directory = path.parent()?;
        [path.as_path(), directory].iter().find_map(|place| {
            let meta = fs::metadata(place).ok()?;
            let shown = place.display();
            if !owners.contains(&meta.uid()) {
                let owner = meta.uid();
                let run = "root runs only its own files, and those of the owner of tollfree";
                return Some(format!("{shown} belongs to user {owner}: {run}"));
            }
            let by_anybody = meta.mode() & 0o002 != 0;
            by_anybody.then(|| format!("{shown} is writable by other users: root does not run it"))
        })
    }
}

fn directories(variable: &str) -> Vec<PathBuf> {
    let value = env::var_os(variable).unwrap_or_default();
    env::split_paths(&value)
        .filter(|p| !p.as_os_str().is_empty())
        .collect()
}

/// The directory of this executable; for a test in `deps/`, the parent directory.
fn executable_directory() -> Option<PathBuf> {
    let executable = env::current_exe().ok()?;
    let directory = executable.parent()?;
    match directory.ends_with("deps") {
        true => directory.parent().map(Path::to_owned),
        false => Some(directory.to_owned()),
    }
}

/// The source checkout with this executable in its `target` directory.
fn own_checkout(beside: &Path) -> Option<PathBuf> {
    let target = beside.ancestors().find(|p| p.ends_with("target"))?;
    target
        .parent()
        .filter(|p| is_checkout(p))
        .map(Path::to_owned)
}

fn is_checkout(directory: &Path) -> bool {
    directory.join("crates/toll-preload/Cargo.toml").is_file()
}

/// The build directories of a checkout.
fn built(root: &Path) -> [PathBuf; 3] {
    ["target/release", "target/debug", "plugins/user/build"].map(|directory| root.join(directory))
}

fn missing(name: &str) -> UserError {
    let how = match name {
        PRELOAD => "build it with `cargo build --release -p toll-preload`".to_owned(),
        _ if PLUGINS.contains(&name) => "build it with `make -C plugins`".to_owned(),
        QEMU => qemu_advice(&Root::system()),
        _ => "install it".to_owned(),
    };
    UserError::Missing(format!(
        "{name} is missing: {how}; or name its directory in TOLLFREE_LIBDIR"
    ))
}

/// How to get a QEMU that the simulator supports, on the distribution in /etc/os-release.
pub fn qemu_advice(root: &Root) -> String {
    let release = root.read("/etc/os-release").unwrap_or_default();
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default()
            .trim_matches(['"', '\''])
            .to_owned()
    };
    let id = value("ID=");
    let version = value("VERSION_ID=");
    let name = format!("{} {version}", value("NAME="));
    let is_or_like = |family: &str| {
        let like = value("ID_LIKE=");
        id == family || like.split(' ').any(|word| word == family)
    };
    let package = match id.as_str() {
        "debian" if version == "12" => "`apt install qemu-user`",
        "debian" => {
            return format!(
                "the qemu-user of {name} has no plugins; in tollfree's sources \
                 `setup/setup.sh demo` downloads Debian 12's, which `make install` installs for all"
            );
        }
        _ if is_or_like("debian") || is_or_like("ubuntu") => "`apt install qemu-user`",
        _ if is_or_like("fedora") || is_or_like("rhel") => "`dnf install qemu-user`",
        _ if is_or_like("suse") || is_or_like("opensuse") => "`zypper install qemu-linux-user`",
        _ if is_or_like("arch") => "`pacman -S qemu-user`",
        _ if is_or_like("alpine") => "`apk add qemu-x86_64`",
        _ => return format!("install QEMU's user emulation, {QEMU_VERSIONS} with plugins"),
    };
    let version = match (id.as_str(), version.as_str()) {
        ("debian", "12") => String::new(),
        _ => format!(", if it is {QEMU_VERSIONS} and has plugins"),
    };
    format!("on {}: {package}{version}", name.trim())
}

#[cfg(test)]
mod tests;
