// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's initramfs: its init, its programs, and its job list.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Guest, Job, Program};
use crate::error::LabError;
use crate::files;
use crate::workspace::Workspace;

/// A cpio archive for one guest.
#[derive(Debug)]
pub struct Initramfs {
    pub path: PathBuf,
}

impl Initramfs {
    /// Writes the archive with gen_init_cpio of the kernel's build.
    pub fn build(workspace: &Workspace, guest: &Guest<'_>) -> Result<Initramfs> {
        let init = Program::compiled(workspace, "init")?.host;
        let commands = guest.directory.join("commands");
        files::write(&commands, lines(guest.jobs)?.as_bytes())?;
        // Servers look up root in /etc/passwd.
        let users = guest.directory.join("passwd");
        files::write(&users, b"root:x:0:0:root:/:/bin/sh\n")?;
        let given = [
            ("/init", &init),
            ("/lab/commands", &commands),
            ("/etc/passwd", &users),
        ];
        let list = guest.directory.join("initramfs.list");
        files::write(&list, listing(&given, guest.programs).as_bytes())?;
        let path = guest.directory.join("initramfs");
        let archive = File::create(&path).with_context(|| path.display().to_string())?;
        let tool = generator(guest.image)?;
        let output = Command::new(&tool)
            .arg(&list)
            .stdout(archive)
            .stderr(Stdio::piped())
            .output()
            .with_context(|| tool.display().to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(LabError::Input(format!("{}: {}", list.display(), said.trim_end())).into());
        }
        Ok(Initramfs { path })
    }
}

/// Finds gen_init_cpio in the build that an image belongs to (`BUILD/arch/x86/boot/bzImage`).
fn generator(image: &Path) -> Result<PathBuf> {
    let build = image.ancestors().nth(4).unwrap_or(Path::new("/"));
    let tool = build.join("usr/gen_init_cpio");
    if tool.is_file() {
        return Ok(tool);
    }
    let why = "is not there: the kernel was built without CONFIG_BLK_DEV_INITRD";
    Err(LabError::Missing(format!("{}: {why}", tool.display())).into())
}

/// Encodes the jobs for the guest's init.
fn lines(jobs: &[Job]) -> Result<String> {
    let mut text = String::new();
    for job in jobs {
        let words = || std::iter::once(&job.name).chain(&job.command);
        if let Some(word) = words().find(|word| word.is_empty() || word.contains(['\t', '\n'])) {
            return Err(LabError::Input(format!(
                "{}: {word:?}: a word of a guest's command is empty or contains a tab or newline",
                job.name
            ))
            .into());
        }
        let words: Vec<&str> = words().map(String::as_str).collect();
        text += &words.join("\t");
        text.push('\n');
    }
    Ok(text)
}

/// Lists the content for gen_init_cpio. Each path occurs once, even if two programs need the same
/// library.
fn listing(given: &[(&str, &PathBuf)], programs: &[Program]) -> String {
    let mut lines = vec![
        "dir /dev 755 0 0".to_owned(),
        "nod /dev/console 600 0 0 c 5 1".to_owned(),
    ];
    let ours = given.iter().map(|(guest, host)| (*guest, host.as_path()));
    let all = ours.chain(
        programs
            .iter()
            .map(|it| (it.guest.as_str(), it.host.as_path())),
    );
    let mut add = |line: String| {
        if !lines.contains(&line) {
            lines.push(line);
        }
    };
    for (guest, host) in all {
        let directories: Vec<&Path> = Path::new(guest).ancestors().skip(1).collect();
        for directory in directories.iter().rev().skip(1) {
            add(format!("dir {} 755 0 0", directory.display()));
        }
        add(format!("file {guest} {} 755 0 0", host.display()));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, words: &[&str]) -> Job {
        Job {
            name: name.to_owned(),
            command: words.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    #[test]
    fn a_job_is_a_line() {
        let jobs = [job("a", &["/bin/a", "x y"]), job("b", &["/bin/b"])];
        assert_eq!(lines(&jobs).unwrap(), "a\t/bin/a\tx y\nb\t/bin/b\n");
        for word in ["", "a\tb", "a\nb"] {
            let error = lines(&[job("bad", &["/bin/a", word])])
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("bad: "), "{error}");
        }
    }

    #[test]
    fn directories_come_once_and_before_their_files() {
        let program = |guest: &str| Program {
            host: PathBuf::from("/host/x"),
            guest: guest.to_owned(),
        };
        let text = listing(
            &[("/init", &PathBuf::from("/i"))],
            &[
                program("/test/a/x"),
                program("/test/b"),
                program("/test/a/x"),
            ],
        );
        let ours: Vec<&str> = text.lines().filter(|line| line.contains("/test")).collect();
        let expected = [
            "dir /test 755 0 0",
            "dir /test/a 755 0 0",
            "file /test/a/x /host/x 755 0 0",
            "file /test/b /host/x 755 0 0",
        ];
        assert_eq!(ours, expected);
    }
}
