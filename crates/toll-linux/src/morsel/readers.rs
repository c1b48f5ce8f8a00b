// SPDX-License-Identifier: MIT OR Apache-2.0
//! Access to copies: a copy is never readable by more users than its source.
//!
//! By default a copy is private to its owner. It is opened to the source's group, or to everyone,
//! only if the mode of the source and of every directory on its path admits all of them. Anything
//! that mode bits do not show keeps a copy private: access control lists, file systems with their
//! own access decisions (on a server, or in a program), and a private mount namespace.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::fs::{CWD, Gid, Mode, OFlags, Stat, fchown, fstat, fstatfs, getxattr, openat};
use rustix::io::Errno;

use super::Source;

/// Mode of a copy that is private to its owner.
const PRIVATE: u32 = 0o400;
/// File systems on which mode bits and POSIX lists alone decide access (`statfs(2)`; the last two
/// from the kernel's `linux/magic.h`).
const LOCAL: [i64; 10] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xf2f5_2010, // f2fs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x7371_7368, // squashfs
    0x9660,      // iso9660
    0xe0f5_e1e2, // erofs
];

/// Access to a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readers {
    pub group: bool,
    pub others: bool,
    /// Why the copy is private although the source's own mode admits others.
    pub why_not: Option<String>,
}

impl Readers {
    /// Only the owner.
    fn nobody_else(why: String) -> Readers {
        Readers {
            group: false,
            others: false,
            why_not: Some(why),
        }
    }

    /// Returns the mode bits of the copy.
    pub fn mode(&self) -> u32 {
        PRIVATE | if self.group { 0o040 } else { 0 } | if self.others { 0o004 } else { 0 }
    }
}

/// Determines the readers of a copy of a file from the current state of its path.
pub fn of(source: &Source) -> Readers {
    if let Err(why) = sees_what_all_see() {
        return Readers::nobody_else(why);
    }
    match walk(source) {
        Ok(steps) => judge(&steps),
        Err(why) => Readers::nobody_else(why),
    }
}

/// Changes a nameless copy to the source's group, if the group may read it and others may not.
pub fn give_group(copy: &File, source: &Source, readers: &mut Readers) {
    if !readers.group || readers.others {
        return;
    }
    let given =
        fstat(&source.file).and_then(|stat| fchown(copy, None, Some(Gid::from_raw(stat.st_gid))));
    if let Err(error) = given {
        readers.group = false;
        readers.why_not = Some(format!("it cannot be given to the file's group: {error}"));
    }
}

/// A directory on the path to a file, or the file itself.
struct Step {
    path: String,
    /// Type and permissions.
    mode: u32,
    group: u32,
    /// Access restriction that mode bits do not show.
    obstacle: Option<String>,
}

/// Intersects the classes that pass all directories (search) and the file (read).
fn judge(steps: &[Step]) -> Readers {
    if let Some(why) = steps.iter().find_map(|step| step.obstacle.clone()) {
        return Readers::nobody_else(why);
    }
    let Some((file, directories)) = steps.split_last() else {
        return Readers::nobody_else("its path is unknown".to_owned());
    };
    // Check all three classes: the owner or the group may be denied what others are allowed.
    let lets_all = |step: &&Step, bits| step.mode & bits == bits;
    let lets_group = |step: &&Step| {
        lets_all(step, 0o111) || step.group == file.group && step.mode & 0o110 == 0o110
    };
    let closed = directories.iter().find(|step| !lets_all(step, 0o111));
    let others = closed.is_none() && lets_all(&file, 0o444);
    let closed_to_group = directories.iter().find(|step| !lets_group(step));
    let group = others || closed_to_group.is_none() && file.mode & 0o440 == 0o440;
    let wanted = file.mode & 0o044;
    let got = if others { 0o044 } else { 0 } | if group { 0o040 } else { 0 };
    let why_not = (wanted & !got != 0).then(|| match closed {
        Some(directory) => format!("{} is not open to all", directory.path),
        None => format!("mode {:03o} excludes some users", file.mode & 0o777),
    });
    Readers {
        group,
        others,
        why_not,
    }
}

/// Inspects every directory of a path, starting at the root, and the file.
fn walk(source: &Source) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut here: Option<File> = None;
    let mut path = std::path::PathBuf::new();
    for component in source.path.components() {
        path.push(component);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = here.as_ref().map_or(CWD, AsFd::as_fd);
        let file: File = openat(directory, component.as_os_str(), flags, Mode::empty())
            .map_err(|error| format!("{}: {error}", path.display()))?
            .into();
        steps.push(look(&file, &path)?);
        here = Some(file);
    }
    let same = |one: &Stat, other: &Stat| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino);
    let last = here.and_then(|file| fstat(&file).ok());
    match (last, fstat(&source.file)) {
        (Some(last), Ok(open)) if same(&last, &open) => Ok(steps),
        _ => Err(format!("{} was replaced by another file", path.display())),
    }
}

fn look(file: &File, path: &Path) -> Result<Step, String> {
    let name = path.display().to_string();
    let said = |error: Errno| format!("{name}: {error}");
    let stat = fstat(file).map_err(said)?;
    let kind = fstatfs(file).map_err(said)?.f_type as i64;
    let obstacle = match (LOCAL.contains(&kind), has_list(file)) {
        (false, _) => Some(format!(
            "{name} is on a file system that may not decide access by mode bits alone"
        )),
        (true, true) => Some(format!("{name} has an access control list")),
        (true, false) => None,
    };
    Ok(Step {
        path: name,
        mode: stat.st_mode,
        group: stat.st_gid,
        obstacle,
    })
}

/// Whether a file has an access control list; true if unknown.
fn has_list(file: &File) -> bool {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut none: [u8; 0] = [];
    match getxattr(link, "system.posix_acl_access", &mut none) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => false,
        Ok(_) | Err(_) => true,
    }
}

/// Checks that this process is in the machine's first mount namespace.
pub(super) fn sees_what_all_see() -> Result<(), String> {
    /// Inode of the first mount namespace, from Linux 6.17 on (`PROC_MNT_INIT_INO` of
    /// `linux/nsfs.h`).
    const FIRST: &str = "mnt:[4026531832]";
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let own = namespace("self");
    if own.is_some() && (own == namespace("1") || own.as_deref() == Some(Path::new(FIRST))) {
        return Ok(());
    }
    Err("other users may see different file systems (mount namespace)".to_owned())
}

#[cfg(test)]
mod tests;
