// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles of processes: given to the kernel, and read back with the outcome of each row.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};

use crate::Root;

/// Magic of a profile for the kernel.
pub const MAGIC: &[u8] = b"mm_profile ";

/// Why the kernel did not accept a profile.
#[derive(Debug, thiserror::Error)]
pub enum GiveError {
    #[error("this kernel has no econ (/proc/self/mm_profile)")]
    Missing,
    /// The kernel's message: `line 4: the end is not behind the begin`.
    #[error("{0}")]
    Refused(String),
    #[error("/proc/self/mm_profile: {0}")]
    Failed(#[from] io::Error),
}

/// Gives this process a profile. Programs that it executes inherit it; it applies to the program of
/// its name.
///
/// # Errors
/// [`GiveError`] with the reason; the previous profile stays in place.
pub fn give(profile: &[u8]) -> Result<(), GiveError> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/proc/self/mm_profile");
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(GiveError::Missing),
        opened => opened?,
    };
    // One write is one profile.
    match file.write(profile) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let mut said = String::new();
            file.rewind()?;
            file.read_to_string(&mut said)?;
            Err(GiveError::Refused(said.trim_end().to_owned()))
        }
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::TOOBIG.raw_os_error()) => {
            Err(GiveError::Refused("longer than 1 MiB".to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// A row of a process's profile with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As in the profile: `heap`, or `mmap 2 30 3`.
    pub site: String,
    pub begin: u64,
    pub end: u64,
    pub benefit_ns: u64,
    pub touched: u64,
    pub confidence: u64,
    /// Current start address; `None` if the site is not mapped yet.
    pub address: Option<u64>,
    /// Numbers of regions that were made huge, and that were not.
    pub huge: u64,
    pub small: u64,
    /// `None`: this kernel does not observe them.
    pub observed: Option<Observed>,
}

/// Huge regions of a row that the kernel observed by their accessed bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    pub regions: u64,
    /// Number of those that the program used meanwhile.
    pub used: u64,
}

/// Returns the rows of a process's profile; empty in the cases of [`Ledger::read`].
pub fn rows(root: &Root, pid: u32) -> Vec<Row> {
    let text = root
        .read(format!("/proc/{pid}/mm_profile"))
        .unwrap_or_default();
    text.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let (written, came) = line.split_once(" # at ")?;
    let words: Vec<&str> = written.split(' ').collect();
    let split = words.len().checked_sub(5)?;
    let numbers: Vec<u64> = words[split..]
        .iter()
        .filter_map(|word| number(word))
        .collect();
    let [begin, end, benefit_ns, touched, confidence] = numbers[..] else {
        return None;
    };
    let came: Vec<&str> = came.split(' ').collect();
    let ["huge", "small"] = [*came.get(1)?, *came.get(3)?] else {
        return None;
    };
    Some(Row {
        site: words[..split].join(" "),
        begin,
        end,
        benefit_ns,
        touched,
        confidence,
        address: number(came[0]).filter(|address| *address != 0),
        huge: number(came[2])?,
        small: number(came.get(4)?)?,
        observed: observed(&came[5..]),
    })
}

fn observed(words: &[&str]) -> Option<Observed> {
    let ["observed", regions, "used", used] = words else {
        return None;
    };
    Some(Observed {
        regions: number(regions)?,
        used: number(used)?,
    })
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
