// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identifies one state of a file: device, inode, size, the times of the last modification and of
//! the last change, and a checksum of a sample of the content.
//!
//! Anyone with write access can set a file's modification time (`cp -p`, `touch -r`), but not its
//! change time.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::str::FromStr;

use rustix::fs::{Advice, fadvise};

/// Number of sampled blocks, evenly distributed, including the first and the last.
const BLOCKS: u64 = 64;
const BLOCK: u64 = 4096;

/// One state of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Time of the last modification: seconds and nanoseconds.
    pub seconds: i64,
    pub nanoseconds: u32,
    /// Time of the last change of content, name, owner or mode: seconds and nanoseconds.
    pub changed_seconds: i64,
    pub changed_nanoseconds: u32,
    /// FNV-1a 64 of the sampled blocks.
    pub sum: u64,
}

impl Identity {
    /// Reads the identity of an open file.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(file: &File) -> io::Result<Identity> {
        let meta = file.metadata()?;
        Ok(Identity {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.len(),
            seconds: meta.mtime(),
            nanoseconds: meta.mtime_nsec() as u32,
            changed_seconds: meta.ctime(),
            changed_nanoseconds: meta.ctime_nsec() as u32,
            sum: sample(file, meta.len())?,
        })
    }

    /// Whether the file may still be in this state; the content is not read.
    pub fn may_be(&self, meta: &Metadata) -> bool {
        let modified = (meta.mtime(), meta.mtime_nsec() as u32);
        let changed = (meta.ctime(), meta.ctime_nsec() as u32);
        (meta.dev(), meta.ino(), meta.len()) == (self.device, self.inode, self.size)
            && modified == (self.seconds, self.nanoseconds)
            && changed == (self.changed_seconds, self.changed_nanoseconds)
    }
}

/// Returns the checksum of a sample of the first `size` bytes of a file.
///
/// # Errors
/// The file cannot be read, or is shorter.
pub fn sample(file: &File, size: u64) -> io::Result<u64> {
    // Readahead between the blocks is not useful; an unsupported hint is harmless.
    let _ = fadvise(file, 0, None, Advice::Random);
    let mut sum = Fnv::NEW;
    let mut block = [0; BLOCK as usize];
    for offset in offsets(size) {
        let block = &mut block[..BLOCK.min(size - offset) as usize];
        file.read_exact_at(block, offset)?;
        sum.add(block);
    }
    let _ = fadvise(file, 0, None, Advice::Normal);
    Ok(sum.0)
}

/// Returns the start of each sampled block: all blocks of a small file.
fn offsets(size: u64) -> Vec<u64> {
    if size <= BLOCKS * BLOCK {
        return (0..size).step_by(BLOCK as usize).collect();
    }
    let last = u128::from(size - BLOCK);
    (0..BLOCKS)
        .map(|number| (last * u128::from(number) / u128::from(BLOCKS - 1)) as u64)
        .collect()
}

/// FNV-1a: the sum must not depend on the compiler's hasher.
struct Fnv(u64);

impl Fnv {
    const NEW: Fnv = Fnv(0xcbf2_9ce4_8422_2325);

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity {
            device,
            inode,
            size,
            seconds,
            nanoseconds,
            changed_seconds,
            changed_nanoseconds,
            sum,
        } = self;
        write!(
            f,
            "{device:x}-{inode:x}-{size:x}-{seconds:x}.{nanoseconds:x}-\
             {changed_seconds:x}.{changed_nanoseconds:x}-{sum:016x}"
        )
    }
}

impl FromStr for Identity {
    type Err = ();

    fn from_str(text: &str) -> Result<Identity, ()> {
        let hex = |text: Option<&str>| u64::from_str_radix(text.ok_or(())?, 16).map_err(drop);
        let mut fields = text.split(['-', '.']);
        let identity = Identity {
            device: hex(fields.next())?,
            inode: hex(fields.next())?,
            size: hex(fields.next())?,
            // Before 1970, as the two's complement that `{:x}` prints.
            seconds: hex(fields.next())? as i64,
            nanoseconds: hex(fields.next())?.try_into().map_err(drop)?,
            changed_seconds: hex(fields.next())? as i64,
            changed_nanoseconds: hex(fields.next())?.try_into().map_err(drop)?,
            sum: hex(fields.next())?,
        };
        match fields.next() {
            None => Ok(identity),
            Some(_) => Err(()),
        }
    }
}

#[cfg(test)]
mod tests;
