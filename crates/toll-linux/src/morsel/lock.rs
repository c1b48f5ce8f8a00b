// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits each user to one copy at a time: a lock on the user's own records directory, which no
//! other user can open.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::place::Place;
use super::{MorselError, at};
use crate::Root;

/// Interval between attempts to take a held lock.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until no other copy of this user is in progress, for at most `wait`. The lock is held
/// until the file is closed. `progress` is called on each attempt; waiting ends if it returns
/// false.
///
/// # Errors
/// [`MorselError::Locked`] after `wait`, an interruption, or a system error.
/// [`MorselError::Locked`] after `wait`, an interruption, or the system's.
pub(super) fn take(
    place: &Place,
    wait: Duration,
    progress: &mut dyn FnMut(Option<u64>) -> bool,
) -> Result<File, MorselError> {
    let directory = place.open()?;
    let begun = Instant::now();
    loop {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(directory),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(at(&place.path)(error)),
        }
        if !progress(None) {
            return Err(MorselError::Interrupted);
        }
        let rest = wait.saturating_sub(begun.elapsed());
        if rest.is_zero() {
            return Err(MorselError::Locked {
                holder: holder(&directory, &Root::system()),
                path: place.path.clone(),
                wait,
            });
        }
        thread::sleep(rest.min(PAUSE));
    }
}

/// Describes the process that holds the lock on a file, if it can be determined.
fn holder(file: &File, root: &Root) -> String {
    let unknown = || "an unknown process".to_owned();
    let Ok(meta) = file.metadata() else {
        return unknown();
    };
    let locks = root.read("/proc/locks").unwrap_or_default();
    let device = (libc::major(meta.dev()), libc::minor(meta.dev()));
    let Some(process) = locks
        .lines()
        .find_map(|line| flock_holder(line, device, meta.ino()))
    else {
        return unknown();
    };
    let name = root.read(Path::new("/proc").join(process.to_string()).join("comm"));
    match name {
        Ok(name) => format!("process {process} ({})", name.trim_end()),
        Err(_) => format!("process {process}"),
    }
}

/// Parses a line of `/proc/locks` for the process that holds a flock(2) lock on a file; waiting
/// ones have `->` in the second field, and processes of other namespaces have the number 0.
fn flock_holder(line: &str, device: (u32, u32), inode: u64) -> Option<u32> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, _, process, file, ..] = fields[..] else {
        return None;
    };
    let mut parts = file.split(':');
    let mut hex = || u32::from_str_radix(parts.next()?, 16).ok();
    let is = (hex()?, hex()?) == device && parts.next()?.parse() == Ok(inode);
    process.parse().ok().filter(|process| is && *process != 0)
}

#[cfg(test)]
mod tests;
