// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owners of files that root runs: an executable in a directory without the components, which
//! finds them through the environment.

use std::fs::{self, Permissions};
use std::ops::Deref;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use toll_act::install;
use toll_testkit::Directory;
use toll_testkit::machine::is_root;
use toll_testkit::output::{json, stderr};
use toll_testkit::tool::{library, tollfree};

/// An ordinary user id; the user need not exist.
const USER: u32 = 12_345;

struct Place(Directory);

impl Place {
    /// `None`, with a message, if this process cannot create files of other users.
    fn new() -> Option<Place> {
        let place = Place(Directory::with(&[("list", "17592186044416\n")]));
        fs::create_dir_all(place.path("home/.cache/tollfree/lib")).unwrap();
        fs::copy(tollfree(), place.path("tollfree")).unwrap();
        fs::copy(library(), place.library()).unwrap();
        if chown(place.library(), Some(USER), Some(USER)).is_err() {
            eprintln!("skipped: not root");
            return None;
        }
        Some(place)
    }

    fn library(&self) -> PathBuf {
        self.path("home/.cache/tollfree/lib/libtoll_preload.so")
    }

    /// A run that needs the library, as root with the environment of a user.
    fn run(&self) -> Output {
        Command::new(self.path("tollfree"))
            .args(["run", "--plan", "list", "--", "true"])
            .current_dir(self.as_path())
            .env("HOME", self.path("home"))
            .env_remove("XDG_CACHE_HOME")
            .env_remove("TOLLFREE_LIBDIR")
            .env_remove("CARGO_MANIFEST_DIR")
            .output()
            .unwrap()
    }

    fn assert_refused(&self, why: &str) {
        let output = self.run();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(said.contains("home/.cache/tollfree/lib"), "{said}");
    }

    fn assert_runs(&self) {
        let output = self.run();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
}

impl Deref for Place {
    type Target = Directory;

    fn deref(&self) -> &Directory {
        &self.0
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

/// A QEMU that prints its version, and claims to load any plugin.
const QEMU: &str = "#!/bin/sh\n\
    case $1 in --version) echo 'qemu-x86_64 version 7.2.22';; -h) echo '  -plugin file';; \
    -plugin) echo TOLLSIM1;; esac\n";
/// Debian 13's, without plugin support.
const UNFIT: &str = "#!/bin/sh\ncase $1 in --version) echo 'qemu-x86_64 version 10.0.2';; esac\n";

/// The source files that setup/install.sh installs or reads, with build outputs; the setup has unpacked a QEMU
/// in the home of the building user.
fn checkout(place: &Directory) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for script in ["setup/install.sh", "setup/lib.sh"] {
        let text = fs::read_to_string(root.join(script)).unwrap();
        place.executable(format!("sources/{script}"), &text);
    }
    let licences = ["Apache-2.0", "GPL-2.0-only", "MIT"].map(|it| format!("LICENSES/{it}.txt"));
    for document in ["CHANGELOG.md", "schemas/plan.schema.json"]
        .into_iter()
        .chain(licences.iter().map(String::as_str))
    {
        place.write(format!("sources/{document}"), "");
    }
    for plugin in install::PLUGINS {
        place.write(format!("sources/plugins/user/build/{plugin}"), "");
    }
    let built = place.path("sources/target/release");
    fs::create_dir_all(&built).unwrap();
    fs::copy(tollfree(), built.join("tollfree")).unwrap();
    fs::copy(library(), built.join("libtoll_preload.so")).unwrap();
    let unpacked = "home/.cache/tollfree/qemu-user-7.2";
    for (file, text) in [("bin/qemu-x86_64", QEMU), ("lib/qemu-x86_64", "")] {
        let path = place.write(format!("{unpacked}/{file}"), text);
        fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
    place.executable("path/qemu-x86_64", UNFIT);
}

/// `setup/install.sh ACTION PREFIX`, with this machine's QEMU hidden by an unsuitable one.
fn setup(place: &Directory, action: &str) -> Output {
    let path = std::env::var("PATH").unwrap();
    Command::new(place.path("sources/setup/install.sh"))
        .arg(action)
        .arg(place.path("prefix"))
        .env("HOME", place.path("home"))
        .env("PATH", format!("{}:{path}", place.path("path").display()))
        .env_remove("XDG_CACHE_HOME")
        .output()
        .unwrap()
}

/// The QEMU unpacked in one user's home becomes available to all users.
#[test]
fn an_installed_tollfree_has_the_simulator_for_every_user() {
    let place = Directory::empty();
    fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
    checkout(&place);
    let output = setup(&place, "install");
    assert!(output.status.success(), "{output:?}");
    // Other users cannot access that home.
    fs::set_permissions(place.path("home"), Permissions::from_mode(0o700)).unwrap();
    let mut doctor = Command::new(place.path("prefix/bin/tollfree"));
    doctor
        .args(["doctor", "--json"])
        .env("HOME", "/nonexistent")
        .env("PATH", "/nonexistent")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("TOLLFREE_LIBDIR")
        .env_remove("CARGO_MANIFEST_DIR")
        .current_dir("/");
    if is_root() {
        doctor.uid(USER).gid(USER);
    }
    let report = json(&doctor.output().unwrap());
    let checks = report["checks"].as_array().unwrap();
    let simulator = checks.iter().find(|it| it["name"] == "simulator").unwrap();
    assert_eq!(simulator["state"], "ok", "{simulator}");
    let detail = simulator["detail"].as_str().unwrap();
    assert!(detail.ends_with("lib/tollfree/qemu-x86_64"), "{detail}");

    for document in ["doc/tollfree/MIT.txt", "tollfree/schemas/plan.schema.json"] {
        assert!(place.path("prefix/share").join(document).exists());
    }

    let output = setup(&place, "uninstall");
    assert!(output.status.success(), "{output:?}");
    assert!(!place.path("prefix/lib/tollfree").exists());
    let files = Command::new("find")
        .arg(place.path("prefix"))
        .args(["!", "-type", "d"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(files.stdout).unwrap(), "");
}
