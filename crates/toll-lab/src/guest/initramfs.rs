// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest's file system: its first process, its programs, its commands.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Guest, Job, Program};
use crate::error::LabError;
use crate::files;
use crate::house::House;

/// A cpio archive for one guest.
#[derive(Debug)]
pub struct Initramfs {
    pub path: PathBuf,
}

impl Initramfs {
    /// Writes the archive with the kernel's own gen_init_cpio.
    pub fn build(house: &House, guest: &Guest<'_>) -> Result<Initramfs> {
        let init = Program::compiled(house, "init")?.host;
        let commands = guest.folder.join("commands");
        files::write(&commands, lines(guest.jobs)?.as_bytes())?;
        // Servers ask who root is.
        let users = guest.folder.join("passwd");
        files::write(&users, b"root:x:0:0:root:/:/bin/sh\n")?;
        let given = [
            ("/init", &init),
            ("/lab/commands", &commands),
            ("/etc/passwd", &users),
        ];
        let list = guest.folder.join("initramfs.list");
        files::write(&list, listing(&given, guest.programs).as_bytes())?;
        let path = guest.folder.join("initramfs");
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

/// gen_init_cpio of the build that an image comes from (`BUILD/arch/x86/boot/bzImage`).
fn generator(image: &Path) -> Result<PathBuf> {
    let build = image.ancestors().nth(4).unwrap_or(Path::new("/"));
    let tool = build.join("usr/gen_init_cpio");
    if tool.is_file() {
        return Ok(tool);
    }
    let why = "is not there: the kernel was built without CONFIG_BLK_DEV_INITRD";
    Err(LabError::Missing(format!("{}: {why}", tool.display())).into())
}

/// The jobs as the guest's init reads them.
fn lines(jobs: &[Job]) -> Result<String> {
    let mut text = String::new();
    for job in jobs {
        let words = || std::iter::once(&job.name).chain(&job.command);
        if let Some(word) = words().find(|word| word.is_empty() || word.contains(['\t', '\n'])) {
            return Err(LabError::Input(format!(
                "{}: {word:?}: a word of a guest's command is neither empty nor holds a tab or newline",
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

/// What gen_init_cpio is to pack; each path once, though two programs may need the same library.
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
        let folders: Vec<&Path> = Path::new(guest).ancestors().skip(1).collect();
        for folder in folders.iter().rev().skip(1) {
            add(format!("dir {} 755 0 0", folder.display()));
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
    fn folders_come_once_and_before_their_files() {
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
