// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host files copied into a guest: our own static programs, and host commands with their libraries.

use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::error::LabError;
use crate::files;
use crate::workspace::Workspace;

/// The dynamic loader, at the same path on the host and in the guest.
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// A host file copied into the guest.
#[derive(Debug, Clone)]
pub struct Program {
    pub host: PathBuf,
    /// Path in the guest.
    pub guest: String,
}

impl Program {
    /// Compiles a program of lab/guest, by the name of its source, unless it is up to date with
    /// that directory. It is /bin/NAME in the guest.
    ///
    /// # Errors
    /// [`LabError::Build`] with the compiler's output; [`LabError::Missing`] without a compiler.
    pub fn compiled(workspace: &Workspace, name: &str) -> Result<Program> {
        let source = workspace.guest.join(name).with_extension("c");
        let directory = workspace.cache.join("guest");
        let _lock = files::lock(&directory.join("lock"))?;
        let host = directory.join(format!("{name}-{:016x}", fingerprint(workspace, name)?));
        if !host.is_file() {
            compile(&source, &host)?;
        }
        Ok(Program {
            host,
            guest: format!("/bin/{name}"),
        })
    }

    /// Collects a host command and the libraries that its loader opens. The command is /bin/NAME in
    /// the guest; libraries keep their paths.
    ///
    /// # Errors
    /// [`LabError::Missing`] if the command or one of its libraries is not installed.
    pub fn installed(name: &str) -> Result<Vec<Program>> {
        let host = find(name).ok_or_else(|| {
            LabError::Missing(match name {
                "tollfree" => {
                    "tollfree: is not built: cargo build --release -p tollfree".to_owned()
                }
                _ => format!(
                    "{name}: is not installed: setup/setup.sh lab installs what scenarios need"
                ),
            })
        })?;
        Program::with_libraries(&host, name)
    }

    /// Collects a program by its path, and its libraries, like [`Program::installed`].
    ///
    /// # Errors
    /// [`LabError::Usage`] if it is no file, [`LabError::Missing`] if one of its libraries is not
    /// installed.
    pub fn given(path: &Path) -> Result<Vec<Program>> {
        match path.file_name().and_then(|it| it.to_str()) {
            Some(name) if path.is_file() => Program::with_libraries(path, name),
            _ => Err(LabError::Usage(format!("{}: is not a program", path.display())).into()),
        }
    }

    fn with_libraries(host: &Path, name: &str) -> Result<Vec<Program>> {
        let mut found = vec![Program {
            host: host.to_owned(),
            guest: format!("/bin/{name}"),
        }];
        let output = Command::new(LOADER).arg("--list").arg(host).output();
        // The loader rejects static programs.
        let Ok(output) = output
            .as_ref()
            .map(|it| String::from_utf8_lossy(&it.stdout))
        else {
            return Ok(found);
        };
        for path in libraries(&output) {
            let path = path.map_err(|library| {
                LabError::Missing(format!("{name}: its library {library} is not installed"))
            })?;
            found.push(Program {
                host: PathBuf::from(path),
                guest: path.to_owned(),
            });
        }
        Ok(found)
    }
}

/// Finds a command beside this one, in PATH, and in the directories of system programs.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    let is_program = |path: &PathBuf| path.is_file();
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    beside
        .into_iter()
        .chain(env::split_paths(&path))
        .chain(system)
        .map(|directory| directory.join(name))
        .find(is_program)
}

/// Parses the paths in the output of `ld.so --list`; a library that is not found is an error.
fn libraries(listing: &str) -> impl Iterator<Item = Result<&str, &str>> {
    listing.lines().filter_map(|line| {
        let line = line.trim();
        let (name, path) = match line.split_once(" => ") {
            Some((name, path)) => (name, path),
            None => (line, line),
        };
        if path.starts_with("not found") {
            return Some(Err(name));
        }
        let path = path.split(" (").next()?;
        path.starts_with('/').then_some(Ok(path))
    })
}

/// Digest of the source and all files that it may include.
fn fingerprint(workspace: &Workspace, name: &str) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    for file in files::below(&workspace.guest)? {
        let is_header = file.extension().is_some_and(|it| it == "h");
        if is_header || file.file_stem().is_some_and(|stem| stem == name) {
            files::read(&workspace.guest.join(&file))?.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}

fn compile(source: &Path, to: &Path) -> Result<()> {
    let part = files::with_suffix(to, ".part");
    let output = Command::new("gcc")
        .args([
            "-static",
            "-pthread",
            "-D_GNU_SOURCE",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
        ])
        .arg(&part)
        .arg(source)
        .arg("-lm")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| LabError::Missing(format!("gcc: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(LabError::Build(format!("{}: {}", source.display(), said.trim_end())).into());
    }
    std::fs::rename(&part, to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_with_a_path() {
        let listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\
            \tliblzma.so.5 => /lib/x86_64-linux-gnu/liblzma.so.5 (0x00007f1)\n\
            \t/lib64/ld-linux-x86-64.so.2 (0x00007f2)\n";
        let found: Vec<_> = libraries(listing).collect();
        let expected = [
            Ok("/lib/x86_64-linux-gnu/liblzma.so.5"),
            Ok("/lib64/ld-linux-x86-64.so.2"),
        ];
        assert_eq!(found, expected);
        let missing: Vec<_> = libraries("\tlibx.so.1 => not found\n").collect();
        assert_eq!(missing, [Err("libx.so.1")]);
    }

    #[test]
    fn a_command_comes_with_its_loader() {
        let found = Program::installed("sh").unwrap();
        assert_eq!(found[0].guest, "/bin/sh");
        assert!(found.iter().any(|it| it.guest == LOADER), "{found:?}");
        let error = Program::installed("no-such-command")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("no-such-command: "), "{error}");
    }
}
