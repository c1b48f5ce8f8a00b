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
            changed_seconds: 7,
            changed_nanoseconds: 8,
            sum: 1,
        };
        assert_eq!(identity.to_string().parse(), Ok(identity));
        for wrong in [
            "",
            "1-2-3-4.5",
            "1-2-3-4.5-6",
            "1-2-3-4.5-6.7-8-9",
            "1-2-3-4.x-6.7-8",
            "1-2-3-4.1ffffffff-6.7-8",
            "1-2-3-4.5-6.1ffffffff-8",
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
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
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
        // The kernel's clock ticks every few milliseconds.
        std::thread::sleep(Duration::from_millis(20));
        // The same size and modification time with different content.
        fs::write(&path, vec![8; 1 << 20]).unwrap();
        set_time(then);
        let second = Identity::of(&open()).unwrap();
        assert_eq!(
            Identity {
                sum: first.sum,
                changed_seconds: first.changed_seconds,
                changed_nanoseconds: first.changed_nanoseconds,
                ..second
            },
            first
        );
        assert_ne!(second.sum, first.sum);
        assert!(!first.may_be(&open().metadata().unwrap()));
    }

    /// Blocks that are not sampled may change too, and the writer may reset the modification time.
    #[test]
    fn a_change_between_the_samples_is_seen() {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 4 << 20]).unwrap();
        let first = Identity::of(&file).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let between = offsets(4 << 20)[1] + BLOCK;
        file.write_all_at(b"8", between).unwrap();
        file.set_modified(modified).unwrap();
        let second = Identity::of(&file).unwrap();
        assert_eq!(second.sum, first.sum);
        assert_ne!(second, first);
        assert!(!first.may_be(&file.metadata().unwrap()));
    }
}
