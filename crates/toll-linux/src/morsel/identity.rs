// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tells one state of a file from all others: device, inode, size, time of the last
//! modification, and a checksum of a sample of the content.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::str::FromStr;

use rustix::fs::{Advice, fadvise};

/// Blocks that are sampled, evenly spread, the first and the last among them.
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
    /// FNV-1a 64 of the sampled blocks.
    pub sum: u64,
}

impl Identity {
    /// Looks at an open file.
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
            sum: sample(file, meta.len())?,
        })
    }

    /// Whether the file may still be in this state; its content is not looked at.
    pub fn may_be(&self, meta: &Metadata) -> bool {
        let time = (meta.mtime(), meta.mtime_nsec() as u32);
        (meta.dev(), meta.ino(), meta.len()) == (self.device, self.inode, self.size)
            && time == (self.seconds, self.nanoseconds)
    }
}

/// The checksum of a sample of the first `size` bytes of a file.
///
/// # Errors
/// It cannot be read, or is shorter.
pub fn sample(file: &File, size: u64) -> io::Result<u64> {
    // What lies between the blocks is not wanted; a file system that does not care is no harm.
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

/// Where the sampled blocks begin: all of them in a small file.
fn offsets(size: u64) -> Vec<u64> {
    if size <= BLOCKS * BLOCK {
        return (0..size).step_by(BLOCK as usize).collect();
    }
    let last = u128::from(size - BLOCK);
    (0..BLOCKS)
        .map(|number| (last * u128::from(number) / u128::from(BLOCKS - 1)) as u64)
        .collect()
}

/// FNV-1a: the sum must not change with the compiler's hasher.
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
            sum,
        } = self;
        write!(
            f,
            "{device:x}-{inode:x}-{size:x}-{seconds:x}.{nanoseconds:x}-{sum:016x}"
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
            sum: hex(fields.next())?,
        };
        match fields.next() {
            None => Ok(identity),
            Some(_) => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn text_comes_back() {
        let identity = Identity {
            device: 0xfe01,
            inode: u64::MAX,
            size: 7 << 30,
            seconds: -5,
            nanoseconds: 999_999_999,
            sum: 1,
        };
        assert_eq!(identity.to_string().parse(), Ok(identity));
        for wrong in [
            "",
            "1-2-3-4.5",
            "1-2-3-4.5-6-7",
            "1-2-3-4.x-6",
            "1-2-3-4.1ffffffff-6",
        ] {
            assert_eq!(wrong.parse::<Identity>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn the_sample_reaches_both_ends() {
        assert_eq!(offsets(0), [0; 0]);
        assert_eq!(offsets(1), [0]);
        assert_eq!(offsets(4097), [0, 4096]);
        let large = offsets(7 << 30);
        assert_eq!(large.len() as u64, BLOCKS);
        assert_eq!((large[0], large[63]), (0, (7 << 30) - BLOCK));
        assert!(large.windows(2).all(|two| two[0] < two[1]));
        assert_eq!(offsets(u64::MAX)[63], u64::MAX - BLOCK);
    }

    #[test]
    fn another_state_is_another_identity() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let open = || File::open(&path).unwrap();
        let set_time = |time| {
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(time).unwrap();
        };
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        fs::write(&path, vec![7; 1 << 20]).unwrap();
        set_time(then);
        let first = Identity::of(&open()).unwrap();
        assert_eq!(Identity::of(&open()).unwrap(), first);
        assert!(first.may_be(&open().metadata().unwrap()));
        // The same size and time, another content.
        fs::write(&path, vec![8; 1 << 20]).unwrap();
        assert!(!first.may_be(&open().metadata().unwrap()));
        set_time(then);
        let second = Identity::of(&open()).unwrap();
        assert_eq!(
            Identity {
                sum: first.sum,
                ..second
            },
            first
        );
        assert_ne!(second.sum, first.sum);
    }
}
