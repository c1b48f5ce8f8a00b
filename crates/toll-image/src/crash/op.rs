// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations, as a search chooses them, and what performs them.

use crate::layout::{Time, kind};
use crate::medium::Medium;
use crate::ops::{Fs, OpError, Rename, Result};

/// A path: a name in the root directory, or `directory/name`.
pub type Path = &'static str;

/// An operation. Numbers are bytes, unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    Create(Path),
    Mkdir(Path),
    Mknod(Path),
    Symlink(Path, &'static str),
    Link(Path, Path),
    Unlink(Path),
    /// Removes a name of a file that stays open.
    UnlinkOpen(Path),
    /// Closes all files that stayed open.
    Close,
    /// Makes a file without a name, and then gives it one.
    Unnamed(Path),
    Rmdir(Path),
    Rename(Path, Path, Rename),
    /// Offset, length, value of each byte.
    Write(Path, u64, usize, u8),
    Poke(Path, u64, usize, u8),
    Sync(Path),
    Truncate(Path, u64),
    Punch(Path, u64, u64),
    /// Number of the page, level of the block.
    Populate(Path, u64, u8),
    Chmod(Path, u16),
    Chown(Path, u32),
    Utime(Path, i64),
    Xattr(Path, &'static str, Option<&'static str>),
    Seal(Path, u8),
}

impl Op {
    /// Whether a crash may leave a part of it. All others are there or not.
    pub fn is_gradual(&self) -> bool {
        matches!(self, Op::Write(..) | Op::Punch(..) | Op::Chown(..))
    }

    pub fn perform<M: Medium>(&self, fs: &mut Fs<M>) -> Result<()> {
        match *self {
            Op::Create(_)
            | Op::Mkdir(_)
            | Op::Mknod(_)
            | Op::Symlink(..)
            | Op::Link(..)
            | Op::Unnamed(_) => self.make(fs),
            Op::Unlink(_) | Op::UnlinkOpen(_) | Op::Close | Op::Rmdir(_) | Op::Rename(..) => {
                self.change_names(fs)
            }
            _ => self.change(fs),
        }
    }

    fn make<M: Medium>(&self, fs: &mut Fs<M>) -> Result<()> {
        match *self {
            Op::Create(path) => create(fs, path, kind::FILE | 0o644, 0),
            Op::Mkdir(path) => create(fs, path, kind::DIRECTORY | 0o755, 0),
            Op::Mknod(path) => create(fs, path, kind::BLOCK | 0o600, 0x801),
            Op::Symlink(path, target) => {
                let (parent, text) = place(fs, path)?;
                fs.symlink(parent, text, target.as_bytes()).map(drop)
            }
            Op::Link(old, new) => {
                let number = find(fs, old)?;
                let (parent, text) = place(fs, new)?;
                fs.link(number, parent, text)
            }
            Op::Unnamed(path) => {
                let (parent, text) = place(fs, path)?;
                if fs.lookup(parent, text).is_ok() {
                    return Err(OpError::Exists);
                }
                let number = fs.unnamed(0o600)?;
                fs.link(number, parent, text)?;
                fs.close(number)
            }
            _ => Err(OpError::Invalid),
        }
    }

    fn change_names<M: Medium>(&self, fs: &mut Fs<M>) -> Result<()> {
        match *self {
            Op::Unlink(path) => {
                let (parent, text) = place(fs, path)?;
                fs.unlink(parent, text)
            }
            Op::UnlinkOpen(path) => {
                let (parent, text) = place(fs, path)?;
                fs.open(fs.lookup(parent, text)?);
                fs.unlink(parent, text)
            }
            Op::Close => fs.close_all(),
            Op::Rmdir(path) => {
                let (parent, text) = place(fs, path)?;
                fs.rmdir(parent, text)
            }
            Op::Rename(old, new, how) => {
                let (old, new) = (place(fs, old)?, place(fs, new)?);
                fs.rename(old, new, how)
            }
            _ => Err(OpError::Invalid),
        }
    }

    fn change<M: Medium>(&self, fs: &mut Fs<M>) -> Result<()> {
        match *self {
            Op::Write(path, offset, length, byte) => {
                fs.write(find(fs, path)?, offset, &vec![byte; length])
            }
            Op::Poke(path, offset, length, byte) => {
                fs.poke(find(fs, path)?, offset, &vec![byte; length])
            }
            Op::Sync(path) => fs.sync(find(fs, path)?),
            Op::Truncate(path, size) => fs.truncate(find(fs, path)?, size),
            Op::Punch(path, offset, length) => fs.punch(find(fs, path)?, offset, length),
            Op::Populate(path, index, level) => fs.populate(find(fs, path)?, index, level),
            Op::Chmod(path, mode) => fs.chmod(find(fs, path)?, mode),
            Op::Chown(path, id) => fs.chown(find(fs, path)?, id, id),
            Op::Utime(path, seconds) => fs.utime(find(fs, path)?, Time { seconds, steps: 0 }),
            Op::Xattr(path, name, value) => {
                fs.setxattr(find(fs, path)?, name.as_bytes(), value.map(str::as_bytes))
            }
            Op::Seal(path, seals) => fs.seal(find(fs, path)?, seals),
            _ => Err(OpError::Invalid),
        }
    }
}

/// The directory of a path, and its last part.
fn place<M: Medium>(fs: &Fs<M>, path: Path) -> Result<(u64, &'static [u8])> {
    let root = crate::layout::inode::FIRST;
    match path.rsplit_once('/') {
        None => Ok((root, path.as_bytes())),
        Some((directory, text)) => Ok((find(fs, directory)?, text.as_bytes())),
    }
}

/// The inode of a path.
pub fn find<M: Medium>(fs: &Fs<M>, path: Path) -> Result<u64> {
    let (parent, text) = place(fs, path)?;
    fs.lookup(parent, text)
}

fn create<M: Medium>(fs: &mut Fs<M>, path: Path, mode: u16, rdev: u32) -> Result<()> {
    let (parent, text) = place(fs, path)?;
    fs.create(parent, text, mode, rdev).map(drop)
}
