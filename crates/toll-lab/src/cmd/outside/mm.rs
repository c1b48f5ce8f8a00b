// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's mm selftests, compiled from a kernel's tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::error::LabError;
use crate::files;
use crate::guest::Program;
use crate::kernel::Built;

/// Their directories in a kernel's tree and in a guest.
const TESTS: &str = "tools/testing/selftests/mm";
const DIRECTORY: &str = "/test";
/// Files in which their Makefile caches the libraries that it found.
const FOUND: [&str; 2] = ["local_config.h", "local_config.mk"];
/// Static, so that the guest needs no libraries; khugepaged.c of 6.12 lacks the definition.
const FLAGS: &str = "EXTRA_CFLAGS=-static -s -DKSFT_SKIP=4";

/// The compiled tests.
#[derive(Debug)]
pub struct Tests {
    pub programs: Vec<Program>,
    /// The errors of make.
    said: String,
}

impl Tests {
    /// Compiles all of them, with the headers of their own kernel; some may fail.
    ///
    /// # Errors
    /// [`LabError::Build`] if all fail.
    pub fn compile(built: &Built) -> Result<Tests> {
        let directory = built.tree.join(TESTS);
        let build = built.config.with_file_name("outside");
        fs::create_dir_all(&build).with_context(|| build.display().to_string())?;
        let headers = make(&built.tree, &["O=build".to_owned(), "headers".to_owned()])?;
        if !headers.is_good {
            return Err(LabError::Build(format!("make headers: {}", headers.said)).into());
        }
        for name in FOUND {
            let _ = fs::remove_file(directory.join(name));
        }
        let uapi = built.config.with_file_name("usr/include");
        let words = [
            "-k".to_owned(),
            format!("OUTPUT={}", build.display()),
            format!("KHDR_INCLUDES=-isystem {}", uapi.display()),
            FLAGS.to_owned(),
            "all".to_owned(),
        ];
        let made = make(&directory, &words)?;
        let programs: Vec<Program> = files::below(&build)?
            .iter()
            .map(|name| Program {
                host: build.join(name),
                guest: format!("{DIRECTORY}/{}", name.display()),
            })
            .collect();
        match programs.is_empty() {
            true => Err(LabError::Build(format!("{}: {}", directory.display(), made.said)).into()),
            false => Ok(Tests {
                programs,
                said: made.said,
            }),
        }
    }

    /// Returns why a test was not compiled, if it was not.
    pub fn problem(&self, name: &str) -> Option<String> {
        let program = program(name);
        let is_there = |it: &Program| it.guest.rsplit('/').next() == Some(program);
        if self.programs.iter().any(is_there) {
            return None;
        }
        let said = errors(&self.said);
        Some(
            said.get(program)
                .cloned()
                .unwrap_or_else(|| "its Makefile does not build it here".to_owned()),
        )
    }

    /// The programs that are not in a list.
    pub fn unknown(&self, is_known: impl Fn(&str) -> bool) -> Vec<&str> {
        let names = self.programs.iter();
        let names = names.filter_map(|it| it.guest.rsplit('/').next());
        names.filter(|name| !is_known(name)).collect()
    }
}

/// A test's program, without its arguments.
pub fn program(test: &str) -> &str {
    test.split(' ').next().unwrap_or_default()
}

struct Made {
    is_good: bool,
    /// Its stderr.
    said: String,
}

fn make(directory: &Path, words: &[String]) -> Result<Made> {
    let run = Command::new("make")
        .args(["--no-print-directory", "-s", "-C"])
        .arg(directory)
        .args(words)
        .env_remove("MAKEFLAGS")
        .output()
        .map_err(|error| LabError::Missing(format!("make: {error}")))?;
    Ok(Made {
        is_good: run.status.success(),
        said: String::from_utf8_lossy(&run.stderr).into_owned(),
    })
}

/// The first error in each file, by the file's name without `.c`.
fn errors(said: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in said.lines() {
        let Some((place, what)) = line.split_once("error: ") else {
            continue;
        };
        let file = place.split(':').next().unwrap_or_default();
        let stem = Path::new(file).file_stem().unwrap_or_default();
        let name = stem.to_string_lossy().into_owned();
        found.entry(name).or_insert_with(|| what.to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "cow.c:9:10: warning: x\n\
        hmm-tests.c:34:10: fatal error: lib/test_hmm_uapi.h: No such file or directory\n\
        hmm-tests.c:35:10: error: second\nmake: *** [x] Error 1\n";

    #[test]
    fn the_first_error_of_a_file_is_why_it_is_not_built() {
        let found = errors(SAID);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found["hmm-tests"],
            "lib/test_hmm_uapi.h: No such file or directory"
        );
    }

    #[test]
    fn programs_without_a_test_are_named() {
        let program = |name: &str| Program {
            host: "/x".into(),
            guest: format!("{DIRECTORY}/{name}"),
        };
        let tests = Tests {
            programs: vec![program("cow"), program("new")],
            said: SAID.to_owned(),
        };
        assert_eq!(tests.unknown(|name| name == "cow"), ["new"]);
        assert_eq!(tests.problem("cow -a"), None);
        assert!(tests.problem("hmm-tests").unwrap().contains("test_hmm"));
        assert!(tests.problem("gone").is_some());
    }
}
