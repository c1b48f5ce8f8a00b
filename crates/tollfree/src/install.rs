// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the parts that are not in this executable lie.
//!
//! Searched in this order:
//! 1. each folder of `$TOLLFREE_LIBDIR` (separated by colons),
//! 2. beside the executable, and in `../lib/tollfree` from there,
//! 3. in the source checkout in whose `target` the executable lies (in debug builds also in
//!    that of `$CARGO_MANIFEST_DIR`): `target/*/` and `plugins/user/build`,
//! 4. `${XDG_CACHE_HOME:-~/.cache}/tollfree`, where the setup puts its own QEMU,
//! 5. for programs, `$PATH`.
//!
//! Root takes nothing from there that others could have put there: see [`Trusted`].

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use toll_linux::Root;
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
/// [`UserError::Missing`] says what to install, or which file root does not run and why.
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
    /// For users: the environment of a build says nothing.
    Release,
}

const BUILD: Build = match cfg!(debug_assertions) {
    true => Build::Debug,
    false => Build::Release,
};

/// The folders to search for `name`, best first.
fn places(name: &str, build: Build) -> Vec<PathBuf> {
    let mut places = folders("TOLLFREE_LIBDIR");
    if let Some(beside) = executable_folder() {
        places.extend([beside.clone(), beside.join("../lib/tollfree")]);
        places.extend(own_checkout(&beside).iter().flat_map(|root| built(root)));
    }
    if let (Build::Debug, Some(manifest)) = (build, env::var_os("CARGO_MANIFEST_DIR")) {
        let root = Path::new(&manifest).ancestors().find(|p| is_checkout(p));
        places.extend(root.into_iter().flat_map(built));
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

/// Whose files this process may run. Root has the right to run everybody's, and under
/// `sudo -E` an environment that names a user's folders.
#[derive(Debug)]
enum Trusted {
    /// Not root: the files of all can do no more than this user.
    Everybody,
    /// Root: its own files, those of who called, and of who owns this executable.
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

    /// Why a file that is there is not to be run; `None` also if there is none. A folder that
    /// others can write to is as good as the file.
    fn objection(&self, path: &Path) -> Option<String> {
        let Trusted::Only(owners) = self else {
            return None;
        };
        let path = path.canonicalize().ok()?;
        let folder = path.parent()?;
        [path.as_path(), folder].iter().find_map(|place| {
            let meta = fs::metadata(place).ok()?;
            let shown = place.display();
            if !owners.contains(&meta.uid()) {
                let owner = meta.uid();
                let run = "root runs only its own files, and those of the owner of tollfree";
                return Some(format!("{shown} belongs to user {owner}: {run}"));
            }
            let by_anybody = meta.mode() & 0o002 != 0;
            by_anybody.then(|| format!("{shown} can be written by anybody: root does not run it"))
        })
    }
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

/// The source checkout whose `target` folder this executable is in.
fn own_checkout(beside: &Path) -> Option<PathBuf> {
    let target = beside.ancestors().find(|p| p.ends_with("target"))?;
    target
        .parent()
        .filter(|p| is_checkout(p))
        .map(Path::to_owned)
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("crates/toll-preload/Cargo.toml").is_file()
}

/// Where a checkout keeps what it built.
fn built(root: &Path) -> [PathBuf; 3] {
    ["target/release", "target/debug", "plugins/user/build"].map(|folder| root.join(folder))
}

fn missing(name: &str) -> UserError {
    let how = match name {
        PRELOAD => "build it with `cargo build --release -p toll-preload`".to_owned(),
        PLUGIN => "build it with `make -C plugins`".to_owned(),
        QEMU => qemu_advice(&Root::system()),
        _ => "install it".to_owned(),
    };
    UserError::Missing(format!(
        "{name} is missing: {how}; or name its folder in TOLLFREE_LIBDIR"
    ))
}

/// How to get a QEMU that the simulator can use, on the distribution that /etc/os-release names.
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
                "the qemu-user of {name} takes no plugins; in tollfree's sources `setup/setup.sh demo` \
                 fetches Debian 12's, and `make install` gives it to every user"
            );
        }
        _ if is_or_like("debian") || is_or_like("ubuntu") => "`apt install qemu-user`",
        _ if is_or_like("fedora") || is_or_like("rhel") => "`dnf install qemu-user`",
        _ if is_or_like("suse") || is_or_like("opensuse") => "`zypper install qemu-linux-user`",
        _ if is_or_like("arch") => "`pacman -S qemu-user`",
        _ if is_or_like("alpine") => "`apk add qemu-x86_64`",
        _ => return format!("install QEMU's user emulation, {VERSIONS} with plugins"),
    };
    let version = match (id.as_str(), version.as_str()) {
        ("debian", "12") => String::new(),
        _ => format!(", if it is {VERSIONS} and has plugins"),
    };
    format!("on {}: {package}{version}", name.trim())
}

/// Versions of QEMU with the plugin interface that the simulator's plugin uses.
const VERSIONS: &str = "6.0 to 8.x";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_that_of_the_distribution_at_hand() {
        let folder = tempfile::tempdir().unwrap();
        let release = folder.path().join("etc/os-release");
        fs::create_dir_all(release.parent().unwrap()).unwrap();
        let root = Root::at(folder.path());
        assert!(qemu_advice(&root).starts_with("install QEMU's user emulation, 6.0 to 8.x"));
        for (text, advice) in [
            (
                "ID=debian\nVERSION_ID=\"12\"\nNAME=\"Debian GNU/Linux\"\n",
                "on Debian GNU/Linux 12: `apt install qemu-user`",
            ),
            (
                "NAME='Debian GNU/Linux'\nVERSION_ID='13'\nID=debian\n",
                "the qemu-user of Debian GNU/Linux 13 takes no plugins; in tollfree's sources \
                 `setup/setup.sh demo` fetches Debian 12's, and `make install` gives it to every user",
            ),
            (
                "ID=almalinux\nID_LIKE=\"rhel centos fedora\"\nVERSION_ID=\"9.4\"\nNAME=AlmaLinux\n",
                "on AlmaLinux 9.4: `dnf install qemu-user`, if it is 6.0 to 8.x and has plugins",
            ),
        ] {
            fs::write(&release, text).unwrap();
            assert_eq!(qemu_advice(&root), advice);
        }
    }

    #[test]
    fn the_environment_of_a_build_means_nothing_to_users() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let plugins = root.canonicalize().unwrap().join("plugins/user/build");
        // Cargo sets it for this test; the executable may lie in this checkout besides.
        let count = |build| {
            let places = places(PLUGIN, build);
            places.iter().filter(|place| **place == plugins).count()
        };
        assert_eq!(count(Build::Debug), count(Build::Release) + 1);
    }

    #[test]
    fn only_the_target_folder_of_a_checkout_belongs_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("crates/toll-preload");
        fs::create_dir_all(&manifest).unwrap();
        fs::write(manifest.join("Cargo.toml"), "").unwrap();
        let root = folder.path();
        let own = |inside: &str| own_checkout(&root.join(inside));
        assert_eq!(own("target/release"), Some(root.to_owned()));
        assert_eq!(
            own("target/x86_64-unknown-linux-gnu/release"),
            Some(root.to_owned())
        );
        assert_eq!(own("usr/local/bin"), None);
    }
}
