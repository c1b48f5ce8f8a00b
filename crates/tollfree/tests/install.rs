// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose files root runs: an executable of its own, in a folder without the parts, looks for
//! them where the environment says.

mod preload;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// An ordinary user; it need not exist.
const USER: u32 = 12_345;

struct Place(TempDir);

impl Place {
    /// `None`, and said, where this process may not make files of other users.
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
    // The owner of the folder can exchange the file without owning it.
    let folder = place.library().parent().unwrap().to_owned();
    own(&folder, USER);
    place.assert_refused("belongs to user 12345");
    own(&folder, 0);
    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    place.assert_refused("written by anybody");
}

/// Root that runs a user's executable trusts that user already: a checkout works.
#[test]
fn the_owner_of_the_executable_is_trusted() {
    let Some(place) = Place::new() else {
        return;
    };
    own(&place.path("tollfree"), USER);
    place.assert_runs();
}
