// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder of fixtures that stands for `/`.

use std::fs;

use tempfile::TempDir;
use toll_linux::Root;

/// Files of a made-up machine; the folder lives as long as this does.
pub struct Machine(TempDir);

impl Machine {
    /// A machine with these files, by path below `/`.
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
