// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of a store on tmpfs.

mod access;
mod copies;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::hidden::Hidden;
use super::place::{Place, user};
use super::{Morsel, MorselError, Put, Request, Source, Store, readers};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Whether copies can be opened to others on this machine.
fn may_share() -> bool {
    let may = readers::sees_what_all_see();
    if let Err(why) = &may {
        eprintln!("skipped: {why}");
    }
    may.is_ok()
}

/// Whether the tests run as root, and may change the owner of files.
fn is_root() -> bool {
    let is_root = user() == 0;
    if !is_root {
        eprintln!("skipped: not root");
    }
    is_root
}

/// Longer than any copy in these tests takes.
const WAIT: Duration = Duration::from_secs(600);

/// A store on tmpfs, and a directory with files on disk.
struct Fixture {
    store: Store,
    files: TempDir,
    _directory: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let files = tempfile::tempdir().unwrap();
        set_mode(files.path(), 0o755);
        Fixture {
            store: Store::open(directory.path()).unwrap(),
            files,
            _directory: directory,
        }
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.files.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn put(&self, path: &Path) -> Result<Put, MorselError> {
        self.put_within(path, None, None)
    }

    fn put_within(
        &self,
        path: &Path,
        name: Option<&str>,
        limit: Option<u64>,
    ) -> Result<Put, MorselError> {
        let source = Source::open(path)?;
        self.store.put(Request {
            source: &source,
            name: name.map(OsStr::new),
            limit,
            wait: WAIT,
            progress: &mut |_| true,
        })
    }

    /// Copies a file; `progress` as in [`Request`].
    fn put_watched(
        &self,
        source: &Source,
        progress: &mut dyn FnMut(Option<u64>) -> bool,
    ) -> Result<Put, MorselError> {
        self.store.put(Request {
            source,
            name: None,
            limit: None,
            wait: WAIT,
            progress,
        })
    }

    /// Our own records directory.
    fn own(&self) -> Place {
        let hidden = Hidden::make(&self.store.directory).unwrap();
        hidden.make_own().unwrap()
    }

    fn names(&self) -> Vec<String> {
        let name = |morsel: Morsel| morsel.name.into_string().unwrap();
        self.store.list().unwrap().into_iter().map(name).collect()
    }
}
