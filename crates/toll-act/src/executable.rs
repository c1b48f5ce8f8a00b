// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file that a command really executes, and whether it loads the preload library.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use toll_linux::{Root, symbols};
use toll_model::profile::Program;

use crate::error::UserError;
use crate::search::find_program;

/// What a command executes first.
#[derive(Debug, Clone)]
pub struct Executable {
    /// The file that the command names, possibly a script.
    pub named: PathBuf,
    /// The ELF file, after symbolic links and interpreter lines.
    pub path: PathBuf,
    /// Why it does not load the preload library.
    pub obstacle: Option<Obstacle>,
}

/// Why a program does not load the preload library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// Setuid, setgid, or with file capabilities: the loader ignores LD_PRELOAD.
    Privileged,
    /// There is no loader.
    Static,
    /// Not x86-64.
    ThirtyTwoBit,
    /// The loader of another C library.
    OtherLoader,
    /// AddressSanitizer's library aborts unless it is the first library loaded.
    Sanitizer,
}

impl Obstacle {
    /// Whether LD_PRELOAD may still be set for the program's children. The other loaders would
    /// print an error or fail.
    pub(crate) fn is_harmless(self) -> bool {
        matches!(self, Obstacle::Privileged | Obstacle::Static)
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Privileged => "it runs with privileges of its own (setuid, for example)",
            Obstacle::Static => "it is linked statically",
            Obstacle::ThirtyTwoBit => "it is a 32-bit program",
            Obstacle::OtherLoader => "its C library is not glibc",
            Obstacle::Sanitizer => "it is built with AddressSanitizer, which must come first",
        })
    }
}

impl Executable {
    /// Examines what `command` (with its arguments) would execute.
    ///
    /// # Errors
    /// As [`find_program`].
    pub fn of(command: &[OsString]) -> Result<Executable, UserError> {
        let named = find_program(&command[0])?;
        let path = behind_scripts(&named);
        let path = path.canonicalize().unwrap_or(path);
        let obstacle = obstacle(&path);
        Ok(Executable {
            named,
            path,
            obstacle,
        })
    }

    /// Returns the loader named in the ELF file; `None` for a static program.
    pub fn loader(&self) -> Option<PathBuf> {
        symbols::loader(&self.path)
    }

    /// Returns the name and build-id that profiles and plans store.
    pub fn program(&self) -> Program {
        Program {
            path: self.path.to_string_lossy().into_owned(),
            build_id: symbols::build_id(&self.path),
        }
    }
}

/// Returns the program that a process runs.
///
/// # Errors
/// There is no such process, or its program may not be read.
pub fn program_of(root: &Root, pid: u32) -> io::Result<Program> {
    let link = root.path(format!("/proc/{pid}/exe"));
    let path = std::fs::read_link(&link)?;
    Ok(Program {
        path: path.to_string_lossy().into_owned(),
        // Through the link, which also works for a deleted file and in another mount namespace.
        build_id: symbols::build_id(&link),
    })
}

/// Follows interpreter lines as execve(2) does, and `env NAME` one step further.
fn behind_scripts(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // execve(2) follows five levels.
    for _ in 0..5 {
        match interpreter(&path) {
            Some(next) => path = next,
            None => break,
        }
    }
    path
}

/// The interpreter in a script's first line.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(script)
        .ok()?
        .take(256)
        .read_to_end(&mut head)
        .ok()?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let mut words = line
        .split(|b| b" \t".contains(b))
        .filter(|word| !word.is_empty());
    let program = Path::new(OsStr::from_bytes(words.next()?));
    if program.file_name() == Some(OsStr::new("env")) {
        let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
        return find_program(OsStr::from_bytes(name)).ok();
    }
    Some(program.to_owned())
}

fn obstacle(path: &Path) -> Option<Obstacle> {
    if is_privileged(path) {
        return Some(Obstacle::Privileged);
    }
    if !symbols::is_x86_64(path)? {
        return Some(Obstacle::ThirtyTwoBit);
    }
    match symbols::loader(path) {
        None => Some(Obstacle::Static),
        Some(loader) if !is_glibc(&loader) => Some(Obstacle::OtherLoader),
        Some(_) if is_sanitized(path) => Some(Obstacle::Sanitizer),
        Some(_) => None,
    }
}

fn is_sanitized(path: &Path) -> bool {
    let libraries = symbols::needed(path);
    libraries.iter().any(|name| name.starts_with("libasan.so"))
}

fn is_glibc(loader: &Path) -> bool {
    loader
        .file_name()
        .is_some_and(|name| name.as_bytes().starts_with(b"ld-linux"))
}

/// Whether executing the file changes credentials, so that the kernel sets AT_SECURE.
fn is_privileged(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else {
        return false;
    };
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let setuid = meta.mode() & libc::S_ISUID != 0 && meta.uid() != uid.as_raw();
    let setgid_bits = libc::S_ISGID | libc::S_IXGRP;
    let setgid = meta.mode() & setgid_bits == setgid_bits && meta.gid() != gid.as_raw();
    setuid || setgid || (!uid.is_root() && has_capabilities(path))
}

fn has_capabilities(path: &Path) -> bool {
    let mut buffer = [0u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut buffer).is_ok_and(|length| length > 0)
}

#[cfg(test)]
mod tests;
