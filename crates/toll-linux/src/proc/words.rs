// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads files that separate words by zeros: `cmdline`, `environ`.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use crate::Root;

/// The words of such a file of a process; none if it cannot be read.
pub fn words(root: &Root, pid: u32, name: &str) -> Vec<OsString> {
    let bytes = fs::read(root.path(format!("/proc/{pid}/{name}"))).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0);
    words
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect()
}

/// The value of a variable in the words of `environ`.
pub fn variable(environment: &[OsString], name: &str) -> Option<String> {
    let mut variables = environment.iter().map(|it| it.to_string_lossy());
    variables.find_map(|it| Some(it.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let machine = tempfile::tempdir().unwrap();
        fs::create_dir_all(machine.path().join("proc/7")).unwrap();
        let environ = machine.path().join("proc/7/environ");
        fs::write(environ, b"AB=1\0A=x=y\0A=later\0EMPTY=\0").unwrap();
        let environment = words(&Root::at(machine.path()), 7, "environ");
        let value = |name| variable(&environment, name);
        assert_eq!(value("A").as_deref(), Some("x=y"));
        assert_eq!(value("EMPTY").as_deref(), Some(""));
        assert_eq!(value("B"), None);
        assert!(words(&Root::at(machine.path()), 8, "environ").is_empty());
    }
}
