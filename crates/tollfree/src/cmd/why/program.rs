// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program of the process: its settings, and changes that it offers.

use std::fs;
use std::path::{Path, PathBuf};

use toll_act::permanent::{Candidate, candidates};
use toll_act::settings::{Program, Setting};
use toll_act::traits::Traits;
use toll_linux::Root;
use toll_linux::proc::{variable, words};

use super::reading::Reading;

/// Largest file of settings that is read.
const LARGEST: u64 = 1 << 20;

/// What was found of the program.
#[derive(Debug, Default)]
pub struct Found {
    pub settings: Vec<Setting>,
    pub candidates: Vec<Candidate>,
}

impl Found {
    pub fn of(root: &Root, reading: &Reading) -> Found {
        if !reading.has_mappings {
            return Found::default();
        }
        let directory = PathBuf::from(format!("/proc/{}", reading.pid));
        let command = words(root, reading.pid, "cmdline");
        let environment = words(root, reading.pid, "environ");
        let env = |name: &str| variable(&environment, name);
        let exe = root.path(directory.join("exe"));
        let traits = traits(root, &exe, reading);
        let is_go = reading.is_go || traits.versions.contains_key("go");
        let file = |path: &str| {
            let path = root
                .path(directory.join(if path.starts_with('/') { "root" } else { "cwd" }))
                .join(path.trim_start_matches('/'));
            let is_small = fs::metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= LARGEST);
            is_small.then(|| fs::read_to_string(path).ok()).flatten()
        };
        let program = Program {
            traits: &traits,
            command: &command,
            env: &env,
            file: &file,
            is_go,
        };
        Found {
            settings: program.settings(),
            candidates: candidates(&traits, &command, &env),
        }
    }
}

fn traits(root: &Root, exe: &Path, reading: &Reading) -> Traits {
    let program = fs::read_link(exe).unwrap_or_else(|_| PathBuf::from(&reading.name));
    let program = program.to_string_lossy();
    // Its files, in its mount namespace.
    let files = root.path(format!("/proc/{}/root", reading.pid));
    let mapped = reading
        .files
        .iter()
        .map(|file| files.join(file.trim_start_matches('/')));
    let program = Path::new(program.trim_end_matches(" (deleted)"));
    Traits::of(program, exe, &mapped.collect::<Vec<_>>())
}
