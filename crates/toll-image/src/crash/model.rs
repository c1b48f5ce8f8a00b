// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a file system holds, in memory: as operations should leave it, or as an image has it.

mod read;

use std::collections::{BTreeMap, BTreeSet};

use super::op::{Op, Path};
use crate::layout::{inode, kind, seal};
use crate::ops::Rename;
use crate::xattr::Attributes;

pub use read::read;

/// An inode.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct File {
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    pub size: u64,
    pub seals: u8,
    pub mtime: i64,
    pub ctime: i64,
    pub xattr: Attributes,
    /// Content that is not zero, in units of eight bytes.
    pub content: BTreeMap<u64, u64>,
    /// Earlier content of units that were stored through a mapping since the last synchronization.
    pub loose: BTreeMap<u64, BTreeSet<u64>>,
}

/// A file system.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    /// Inodes that have a name, by number.
    pub files: BTreeMap<u64, File>,
    /// Inodes by directory and name.
    pub names: BTreeMap<(u64, Vec<u8>), u64>,
}

/// The part of a unit that lies before the end of a file.
pub fn before_end(unit: u64, value: u64, size: u64) -> u64 {
    match size.saturating_sub(unit * 8) {
        0 => 0,
        bytes @ 1..8 => value & ((1 << (8 * bytes)) - 1),
        _ => value,
    }
}

impl File {
    fn new(mode: u16, now: i64) -> File {
        File {
            mode,
            mtime: now,
            ctime: now,
            ..File::default()
        }
    }

    pub fn is_sealed(&self) -> bool {
        self.seals & seal::WRITE != 0
    }

    fn set(&mut self, unit: u64, value: u64) {
        match before_end(unit, value, self.size) {
            0 => drop(self.content.remove(&unit)),
            value => drop(self.content.insert(unit, value)),
        }
    }

    /// Stores bytes, and returns the units with what they had before.
    fn store(&mut self, offset: u64, length: usize, byte: u8) -> Vec<(u64, u64)> {
        let end = offset + length as u64;
        let mut before = Vec::new();
        for unit in offset / 8..end.div_ceil(8) {
            let old = self.content.get(&unit).copied().unwrap_or(0);
            let mut bytes = old.to_le_bytes();
            for (n, at) in (unit * 8..unit * 8 + 8).enumerate() {
                if (offset..end).contains(&at) {
                    bytes[n] = byte;
                }
            }
            before.push((unit, old));
            self.set(unit, u64::from_le_bytes(bytes));
        }
        before
    }

    fn poke(&mut self, offset: u64, length: usize, byte: u8) {
        for (unit, old) in self.store(offset, length, byte) {
            self.loose.entry(unit).or_default().insert(old);
        }
    }

    fn write(&mut self, offset: u64, length: usize, byte: u8) {
        let end = offset + length as u64;
        self.size = self.size.max(end);
        self.store(offset, length, byte);
        // A flush covers whole lines.
        let lines = offset / 64 * 8..end.div_ceil(64) * 8;
        self.loose.retain(|unit, _| !lines.contains(unit));
    }

    fn truncate(&mut self, size: u64) {
        self.size = size;
        let cut = |unit: &u64, value: &mut u64| {
            *value = before_end(*unit, *value, size);
            *value != 0
        };
        self.content.retain(cut);
        self.loose.retain(|unit, _| unit * 8 < size);
        for (unit, values) in &mut self.loose {
            *values = values
                .iter()
                .map(|value| before_end(*unit, *value, size))
                .collect();
        }
    }

    fn punch(&mut self, offset: u64, length: u64) {
        let end = (offset + length).min(self.size);
        if offset < end {
            self.store(offset, (end - offset) as usize, 0);
        }
        let whole = offset.div_ceil(8)..end / 8;
        self.loose.retain(|unit, _| !whole.contains(unit));
    }
}

impl Model {
    pub fn find(&self, path: Path) -> Option<u64> {
        let key = self.key(path)?;
        self.names.get(&key).copied()
    }

    fn key(&self, path: Path) -> Option<(u64, Vec<u8>)> {
        match path.rsplit_once('/') {
            None => Some((inode::FIRST, path.into())),
            Some((directory, text)) => Some((self.find(directory)?, text.into())),
        }
    }

    /// Links of an inode, as `st_nlink` has them.
    pub fn links(&self, number: u64) -> usize {
        self.names.values().filter(|it| **it == number).count()
    }

    /// Performs an operation that succeeded. `made` is the inode that it made, if it made one.
    pub fn perform(&mut self, op: &Op, made: u64, now: i64) -> Option<()> {
        match *op {
            Op::Create(path) => self.make(path, made, kind::FILE | 0o644, now),
            Op::Unnamed(path) => self.make(path, made, kind::FILE | 0o600, now),
            Op::Mkdir(path) => self.make(path, made, kind::DIRECTORY | 0o755, now),
            Op::Mknod(path) => {
                self.make(path, made, kind::BLOCK | 0o600, now)?;
                self.files.get_mut(&made)?.rdev = 0x801;
                Some(())
            }
            Op::Symlink(path, target) => {
                self.make(path, made, kind::LINK | 0o777, now)?;
                self.files.get_mut(&made)?.set_target(target);
                Some(())
            }
            Op::Link(old, new) => {
                let number = self.find(old)?;
                self.add(new, number, now)
            }
            Op::Unlink(path) | Op::UnlinkOpen(path) | Op::Rmdir(path) => self.remove(path, now),
            Op::Close | Op::Populate(..) => Some(()),
            Op::Rename(old, new, how) => self.rename(old, new, how, made, now),
            _ => self.change(op, now),
        }
    }

    fn change(&mut self, op: &Op, now: i64) -> Option<()> {
        match *op {
            Op::Write(path, offset, length, byte) => {
                self.content(path, now)?.write(offset, length, byte);
            }
            Op::Poke(path, offset, length, byte) => self.file(path)?.poke(offset, length, byte),
            Op::Sync(path) => self.file(path)?.loose.clear(),
            Op::Truncate(path, size) => self.content(path, now)?.truncate(size),
            Op::Punch(path, offset, length) => self.content(path, now)?.punch(offset, length),
            Op::Chmod(path, mode) => {
                let file = self.attribute(path, now)?;
                file.mode = file.mode & kind::MASK | mode;
            }
            Op::Chown(path, id) => {
                let file = self.attribute(path, now)?;
                (file.uid, file.gid) = (id, id);
            }
            Op::Utime(path, seconds) => self.attribute(path, now)?.mtime = seconds,
            Op::Xattr(path, name, value) => {
                let file = self.attribute(path, now)?;
                match value {
                    Some(value) => drop(file.xattr.insert(name.into(), value.into())),
                    None => drop(file.xattr.remove(name.as_bytes())),
                }
            }
            Op::Seal(path, seals) => {
                let file = self.attribute(path, now)?;
                file.loose.clear();
                file.seals |= seals;
                if seals & seal::WRITE != 0 {
                    file.seals |= seal::SHRINK | seal::GROW;
                }
            }
            _ => {}
        }
        Some(())
    }

    fn file(&mut self, path: Path) -> Option<&mut File> {
        let number = self.find(path)?;
        self.files.get_mut(&number)
    }

    /// A file; its attributes change now.
    fn attribute(&mut self, path: Path, now: i64) -> Option<&mut File> {
        let file = self.file(path)?;
        file.ctime = now;
        Some(file)
    }

    /// A file; its content changes now.
    fn content(&mut self, path: Path, now: i64) -> Option<&mut File> {
        let file = self.attribute(path, now)?;
        file.mtime = now;
        Some(file)
    }

    fn make(&mut self, path: Path, number: u64, mode: u16, now: i64) -> Option<()> {
        self.files.insert(number, File::new(mode, now));
        self.add(path, number, now)
    }

    fn add(&mut self, path: Path, number: u64, now: i64) -> Option<()> {
        let key = self.key(path)?;
        self.touch(key.0, now)?;
        self.files.get_mut(&number)?.ctime = now;
        self.names.insert(key, number);
        Some(())
    }

    fn touch(&mut self, directory: u64, now: i64) -> Option<()> {
        let file = self.files.get_mut(&directory)?;
        (file.mtime, file.ctime) = (now, now);
        Some(())
    }

    fn remove(&mut self, path: Path, now: i64) -> Option<()> {
        let key = self.key(path)?;
        self.touch(key.0, now)?;
        let number = self.names.remove(&key)?;
        self.after_removal(number, now)
    }

    fn after_removal(&mut self, number: u64, now: i64) -> Option<()> {
        self.files.get_mut(&number)?.ctime = now;
        if self.links(number) == 0 {
            self.files.remove(&number);
        }
        Some(())
    }

    fn rename(&mut self, old: Path, new: Path, how: Rename, made: u64, now: i64) -> Option<()> {
        let (old, new) = (self.key(old)?, self.key(new)?);
        let moved = *self.names.get(&old)?;
        let replaced = self.names.get(&new).copied();
        if replaced == Some(moved) {
            return Some(());
        }
        self.names.insert(new.clone(), moved);
        self.names.remove(&old);
        match how {
            Rename::Exchange => drop(self.names.insert(old.clone(), replaced?)),
            Rename::Whiteout => {
                self.files.insert(made, File::new(kind::CHARACTER, now));
                self.names.insert(old.clone(), made);
            }
            Rename::Replace | Rename::NoReplace => {}
        }
        self.files.get_mut(&moved)?.ctime = now;
        self.touch(old.0, now)?;
        self.touch(new.0, now)?;
        match replaced {
            Some(replaced) => self.after_removal(replaced, now),
            None => Some(()),
        }
    }
}

impl File {
    fn set_target(&mut self, target: &str) {
        self.size = target.len() as u64;
        for (n, byte) in target.bytes().enumerate() {
            self.store(n as u64, 1, byte);
        }
    }
}
