// SPDX-License-Identifier: MIT OR Apache-2.0
//! A file to be served from memory.

use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Identity, MorselError, at};

/// Maximum number of changes to the file while [`settle`] waits for its clock.
const TRIES: u32 = 5;

/// A file to be served from memory.
#[derive(Debug)]
pub struct Source {
    pub file: File,
    /// Absolute, without symbolic links.
    pub path: PathBuf,
    pub identity: Identity,
}

impl Source {
    /// Opens and inspects a file. Waits for up to [`granularity`] if it was changed just now.
    ///
    /// # Errors
    /// It cannot be read, is not a regular file, is empty, or keeps changing.
    pub fn open(path: &Path) -> Result<Source, MorselError> {
        let unfit = |why| MorselError::Unfit {
            path: path.to_owned(),
            why,
        };
        let mut options = OpenOptions::new();
        // O_NONBLOCK: a pipe without a writer would block.
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(path).map_err(at(path))?;
        let meta = file.metadata().map_err(at(path))?;
        if !meta.is_file() {
            return Err(unfit("is not a regular file"));
        }
        if meta.len() == 0 {
            return Err(unfit("is empty"));
        }
        settle(&file, path)?;
        Ok(Source {
            identity: Identity::of(&file).map_err(at(path))?,
            path: fs::canonicalize(path).map_err(at(path))?,
            file,
        })
    }
}

/// Waits until the file's change time is in the past, so that any later change to the file also
/// changes that time.
fn settle(file: &File, path: &Path) -> Result<(), MorselError> {
    for _ in 0..TRIES {
        let meta = file.metadata().map_err(at(path))?;
        let wait = time_to_settle(changed(&meta), SystemTime::now());
        if wait.is_zero() {
            return Ok(());
        }
        thread::sleep(wait);
    }
    Err(MorselError::Changing(path.to_owned()))
}

/// Returns the time of the last change; the epoch if it is earlier.
fn changed(meta: &Metadata) -> SystemTime {
    let seconds = u64::try_from(meta.ctime()).unwrap_or(0);
    let nanoseconds = meta.ctime_nsec().clamp(0, 999_999_999) as u32;
    UNIX_EPOCH + Duration::new(seconds, nanoseconds)
}

/// Returns how long a file that was changed at `changed` may still change without a new change
/// time.
fn time_to_settle(changed: SystemTime, now: SystemTime) -> Duration {
    let tick = granularity(changed);
    match now.duration_since(changed) {
        Ok(age) => tick.saturating_sub(age),
        // The clock that set it is ahead of ours: it is a server's, or ours was set back.
        Err(_) if is_far_ahead(changed, now) => Duration::ZERO,
        Err(_) => tick,
    }
}

/// Whether a time is so far in the future that a change now does not get the same time soon.
fn is_far_ahead(changed: SystemTime, now: SystemTime) -> bool {
    const FAR: Duration = Duration::from_secs(60);
    changed.duration_since(now).is_ok_and(|ahead| ahead > FAR)
}

/// Returns the minimum distance of two changes with different times: 20 ms if the file system
/// stores nanoseconds (the kernel's clock ticks every 1 to 10 ms), 2 s if the time is a whole
/// second (FAT has steps of 2 s; ext2, ext3 and ext4 with inodes of 128 bytes have steps of a
/// second).
fn granularity(changed: SystemTime) -> Duration {
    let since = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    match since.subsec_nanos() {
        0 => Duration::from_secs(2),
        _ => Duration::from_millis(20),
    }
}

#[cfg(test)]
mod tests;
