// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an image holds, name by name.

use std::collections::HashMap;

use serde::Serialize;
use toll_image::layout::{Time, inode, kind, pages_of, seal};
use toll_image::survey::{Inode, Name};
use toll_image::{Image, Source, Survey};

use super::PAGE;

/// A name and its inode.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub path: String,
    pub inode: u64,
    pub kind: &'static str,
    /// The permission bits, octal.
    pub mode: String,
    pub uid: u32,
    pub gid: u32,
    pub links: u64,
    /// Bytes of content, and bytes of memory for it, tables included.
    pub size: u64,
    pub allocated: u64,
    /// Blocks of 4 KiB, 2 MiB and 1 GiB.
    pub blocks: [u64; 3],
    pub seals: Vec<&'static str>,
    pub sealed: bool,
    /// Seconds since 1970.
    pub mtime: f64,
    pub ctime: f64,
    /// The target of a symbolic link.
    pub target: Option<String>,
}

/// The longest path that is printed: a hostile image could nest directories without end.
const LONGEST: usize = 4096;

/// The entries of an image.
pub struct Listing<'a> {
    image: &'a Image,
    survey: &'a Survey,
    /// The names of directories.
    directories: HashMap<u64, &'a Name>,
    /// Numbers of subdirectories.
    inside: HashMap<u64, u64>,
}

impl<'a> Listing<'a> {
    pub fn new(image: &'a Image, survey: &'a Survey) -> Listing<'a> {
        let is_directory = |name: &&Name| {
            survey
                .inodes
                .get(&name.inode)
                .is_some_and(Inode::is_directory)
        };
        let names = survey.names.values().filter(is_directory);
        let directories: HashMap<u64, &Name> = names.map(|name| (name.inode, name)).collect();
        let mut inside = HashMap::new();
        for name in directories.values() {
            *inside.entry(name.parent).or_default() += 1;
        }
        Listing {
            image,
            survey,
            directories,
            inside,
        }
    }

    /// All names, by path.
    pub fn all(&self) -> Vec<Entry> {
        let names = self.survey.names.values();
        let mut entries: Vec<Entry> = names
            .filter_map(|name| self.entry(self.path(name), name.inode))
            .collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        entries
    }

    /// The entry of a path.
    pub fn at(&self, path: &str) -> Option<Entry> {
        self.entry(path.to_owned(), self.survey.lookup(path.as_bytes())?)
    }

    fn entry(&self, path: String, number: u64) -> Option<Entry> {
        let found = self.survey.inodes.get(&number)?;
        let pages: u64 = (0..3)
            .map(|level| found.blocks[level as usize] * pages_of(level))
            .sum();
        Some(Entry {
            path,
            inode: number,
            kind: kind_name(found),
            mode: format!("{:04o}", found.mode & 0o7777),
            uid: found.uid,
            gid: found.gid,
            links: self.links(number, found),
            size: found.size,
            allocated: (pages + found.tables + u64::from(found.xattr != 0)) * PAGE,
            blocks: found.blocks,
            seals: seals(found),
            sealed: found.root.is_sealed(),
            mtime: seconds(found.mtime),
            ctime: seconds(found.ctime),
            target: self.target(found),
        })
    }

    /// Links as stat(2) counts them: of a directory, those of its subdirectories too.
    fn links(&self, number: u64, found: &Inode) -> u64 {
        match found.is_directory() {
            false => found.links,
            true => 2 + self.inside.get(&number).copied().unwrap_or(0),
        }
    }

    fn target(&self, found: &Inode) -> Option<String> {
        if found.kind() != kind::LINK {
            return None;
        }
        let page = self.image.page(found.root.page).ok()?;
        let target = page.get(..found.size as usize)?;
        Some(String::from_utf8_lossy(target).into_owned())
    }

    /// The path of a name; of a long one the end.
    fn path(&self, name: &Name) -> String {
        let mut parts = vec![String::from_utf8_lossy(&name.text).into_owned()];
        let mut length = parts[0].len();
        let mut parent = name.parent;
        while let Some(above) = self.directories.get(&parent) {
            if length > LONGEST {
                parts.push("...".to_owned());
                break;
            }
            parts.push(String::from_utf8_lossy(&above.text).into_owned());
            length += above.text.len() + 1;
            parent = if above.inode == inode::FIRST {
                0
            } else {
                above.parent
            };
        }
        parts.reverse();
        parts.join("/")
    }
}

fn kind_name(found: &Inode) -> &'static str {
    match found.kind() {
        kind::FILE => "file",
        kind::DIRECTORY => "directory",
        kind::LINK => "link",
        kind::FIFO => "fifo",
        kind::SOCKET => "socket",
        kind::CHARACTER => "character device",
        _ => "block device",
    }
}

fn seals(found: &Inode) -> Vec<&'static str> {
    let all = [
        (seal::SEAL, "seal"),
        (seal::SHRINK, "shrink"),
        (seal::GROW, "grow"),
        (seal::WRITE, "write"),
    ];
    let set = all
        .into_iter()
        .filter(|(bit, _)| found.root.seals & bit != 0);
    set.map(|(_, name)| name).collect()
}

fn seconds(time: Time) -> f64 {
    time.seconds as f64 + time.steps as f64 / toll_image::layout::TIME_STEPS as f64
}
