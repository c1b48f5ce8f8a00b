// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owners of files that root runs: an executable in a directory without the components, which
//! finds them through the environment.

mod preload;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// An ordinary user id; the user need not exist.
const USER: u32 = 12_345;

struct Place(TempDir);

impl Place {
    /// `None`, with a message, if this process cannot create files of other users.
    fn new() -> Option<Place> {
        let place = Place(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.path("home/.cache/tollfree/lib")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_tollfree"), place.path("tollfree")).unwrap();
        fs::copy(preload::library(), place.library()).unwrap();
        fs::write(place.path("list"), "17592186044416\n").unwrap();
        if chown(place.library(), Some(USER), Some(USER)).is_err() {
            eprintln!("skipped: not root");
            return None;
        }
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn library(&self) -> PathBuf {
        self.path("home/.cache/tollfree/lib/libtoll_preload.so")
    }

    /// A run that needs the library, as root with the environment of a user.
    fn run(&self) -> Output {
        Command::new(self.path("tollfree"))
            .args(["run", "--plan", "list", "--", "true"])
            .current_dir(self.0.path())
            .env("HOME", self.path("home"))
            .env_remove("XDG_CACHE_HOME")
            .env_remove("TOLLFREE_LIBDIR")
            .env_remove("CARGO_MANIFEST_DIR")
            .output()
            .unwrap()
    }

    fn assert_refused(&self, why: &str) {
        let output = self.run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(said.contains("home/.cache/tollfree/lib"), "{said}");
    }

    fn assert_runs(&self) {
        let output = self.run();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
}

fn own(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).unwrap();
}

#[test]
fn root_does_not_run_the_files_of_a_user() {
    let Some(place) = Place::new() else {
        return;
    };
    place.assert_refused("belongs to user 12345");
    own(&place.library(), 0);
    place.assert_runs();
    // The owner of the directory can replace the file without owning it.
    let directory = place.library().parent().unwrap().to_owned();
    own(&directory, USER);
    place.assert_refused("belongs to user 12345");
    own(&directory, 0);
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    place.assert_refused("writable by other users");
}

/// Root that runs a user's executable already trusts that user: a checkout works.
#[test]
fn the_owner_of_the_executable_is_trusted() {
    let Some(place) = Place::new() else {
        return;
    };
    own(&place.path("tollfree"), USER);
    place.assert_runs();
}

/// A QEMU that only prints its version.
const QEMU: &str = "#!/bin/sh\n\
    case $1 in --version) echo 'qemu-x86_64 version 7.2.22';; -h) echo '  -plugin file';; esac\n";
/// Debian 13's, without plugin support.
const UNFIT: &str = "#!/bin/sh\ncase $1 in --version) echo 'qemu-x86_64 version 10.0.2';; esac\n";

/// The source files that setup/install.sh reads, with build outputs; the setup has unpacked a QEMU
/// in the home of the building user.
fn checkout(place: &Path) {
    let write = |path: &str, text: &str, mode: u32| {
        let path = place.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../setup");
    for script in ["install.sh", "lib.sh"] {
        let text = fs::read_to_string(setup.join(script)).unwrap();
        write(&format!("sources/setup/{script}"), &text, 0o755);
    }
    write("sources/plugins/user/build/libtoll_user.so", "", 0o644);
    let built = place.join("sources/target/release");
    fs::create_dir_all(&built).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_tollfree"), built.join("tollfree")).unwrap();
    fs::copy(preload::library(), built.join("libtoll_preload.so")).unwrap();
    let unpacked = "home/.cache/tollfree/qemu-user-7.2";
    write(&format!("{unpacked}/bin/qemu-x86_64"), QEMU, 0o700);
    write(&format!("{unpacked}/lib/qemu-x86_64"), "", 0o700);
    write("path/qemu-x86_64", UNFIT, 0o755);
}

/// `setup/install.sh ACTION PREFIX`, with this machine's QEMU hidden by an unsuitable one.
fn setup(place: &Path, action: &str) -> Output {
    let path = std::env::var("PATH").unwrap();
    Command::new(checkout_script(place))
        .args([action, place.join("prefix").to_str().unwrap()])
        .env("HOME", place.join("home"))
        .env("PATH", format!("{}:{path}", place.join("path").display()))
        .env_remove("XDG_CACHE_HOME")
        .output()
        .unwrap()
}

fn checkout_script(place: &Path) -> PathBuf {
    place.join("sources/setup/install.sh")
}

/// The QEMU unpacked in one user's home becomes available to all users.
#[test]
fn an_installed_tollfree_has_the_simulator_for_every_user() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::set_permissions(place, Permissions::from_mode(0o755)).unwrap();
    checkout(place);
    let output = setup(place, "install");
    assert!(output.status.success(), "{output:?}");
    // Other users cannot access that home.
    fs::set_permissions(place.join("home"), Permissions::from_mode(0o700)).unwrap();
    let mut doctor = Command::new(place.join("prefix/bin/tollfree"));
    doctor
        .args(["doctor", "--json"])
        .env("HOME", "/nonexistent")
        .env("PATH", "/nonexistent")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("TOLLFREE_LIBDIR")
        .env_remove("CARGO_MANIFEST_DIR")
        .current_dir("/");
    // SAFETY: no argument.
    if unsafe { libc::geteuid() } == 0 {
        doctor.uid(USER).gid(USER);
    }
    let report = doctor.output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let simulator = checks.iter().find(|it| it["name"] == "simulator").unwrap();
    assert_eq!(simulator["state"], "ok", "{simulator}");
    let detail = simulator["detail"].as_str().unwrap();
    assert!(detail.ends_with("lib/tollfree/qemu-x86_64"), "{detail}");

    let output = setup(place, "uninstall");
    assert!(output.status.success(), "{output:?}");
    assert!(!place.join("prefix/lib/tollfree").exists());
}
