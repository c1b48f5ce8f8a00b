// SPDX-License-Identifier: MIT OR Apache-2.0
//! A directory of fixtures used in place of `/`.

use std::fs;

use tempfile::TempDir;
use toll_linux::Root;

/// Files of a fictional machine; the directory is removed with the value.
pub struct Machine(TempDir);

impl Machine {
    /// Creates a machine with these files, by path below `/`.
    pub fn with(files: &[(&str, &str)]) -> Machine {
        let machine = Machine(tempfile::tempdir().unwrap());
        for (path, text) in files {
            machine.write(path, text);
        }
        machine
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn root(&self) -> Root {
        Root::at(self.0.path())
    }
}
