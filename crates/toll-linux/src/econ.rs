// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's estimator (mm/econ of the patch queue): profiles of processes, and what was
//! decided for them.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};

use crate::Root;

/// Where the kernel keeps it.
pub const FOLDER: &str = "/sys/kernel/mm/econ";

/// The first bytes of a profile for the kernel.
pub const MAGIC: &[u8] = b"mm_profile ";

/// Why a profile was not taken.
#[derive(Debug, thiserror::Error)]
pub enum GiveError {
    #[error("this kernel has no econ (/proc/self/mm_profile)")]
    Missing,
    /// In the kernel's words: `line 4: the end is not behind the begin`.
    #[error("{0}")]
    Refused(String),
    #[error("/proc/self/mm_profile: {0}")]
    Failed(#[from] io::Error),
}

/// Gives this process a profile, which the programs that it executes inherit; it applies to the
/// one of its name.
///
/// # Errors
/// [`GiveError`] says why not; the process has what it had before.
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

/// What one model has decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// huge, large, direct, promote, demote, compact, zero.
    pub model: String,
    pub asked: u64,
    /// How often the answer was yes, what those were expected to cost and to save, and what
    /// the others would have saved, ns.
    pub gone: u64,
    pub cost_ns: u64,
    pub benefit_ns: u64,
    pub refused_ns: u64,
}

/// What was decided for a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// off, observe, on, or default: as the machine.
    pub mode: String,
    pub accounts: Vec<Account>,
}

impl Ledger {
    /// The ledger of a process; `None` if the kernel has no econ, there is no such process, it
    /// is another user's, or it has no profile.
    pub fn read(root: &Root, pid: u32) -> Option<Ledger> {
        Ledger::parse(&root.read(format!("/proc/{pid}/mm_ledger")).ok()?)
    }

    fn parse(text: &str) -> Option<Ledger> {
        let mut lines = text.lines();
        let mode = lines.next()?.strip_prefix("mode ")?.to_owned();
        let accounts = lines.filter_map(account).collect();
        Some(Ledger { mode, accounts })
    }
}

fn account(line: &str) -> Option<Account> {
    let mut words = line.split(' ');
    let model = words.next()?.to_owned();
    let mut number = || words.next()?.parse().ok();
    Some(Account {
        model,
        asked: number()?,
        gone: number()?,
        cost_ns: number()?,
        benefit_ns: number()?,
        refused_ns: number()?,
    })
}

/// A row of a process's profile, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As in the profile: `heap`, or `mmap 2 30 3`.
    pub anchor: String,
    pub begin: u64,
    pub end: u64,
    pub benefit_ns: u64,
    pub touched: u64,
    pub confidence: u64,
    /// Where it begins now; `None`: nowhere yet.
    pub address: Option<u64>,
    /// Regions that were made huge, and that were not.
    pub huge: u64,
    pub small: u64,
}

/// The rows of a process's profile; empty as for [`Ledger::read`].
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
        anchor: words[..split].join(" "),
        begin,
        end,
        benefit_ns,
        touched,
        confidence,
        address: number(came[0]).filter(|address| *address != 0),
        huge: number(came[2])?,
        small: number(came.get(4)?)?,
    })
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_has_a_line_for_each_model() {
        let ledger =
            Ledger::parse("mode default\nhuge 12 10 2200000 50000000 130\nlarge 0 0 0 0 0\n");
        let ledger = ledger.unwrap();
        assert_eq!(ledger.mode, "default");
        assert_eq!(ledger.accounts.len(), 2);
        assert_eq!(ledger.accounts[0].gone, 10);
        assert_eq!(ledger.accounts[0].refused_ns, 130);
        assert_eq!(Ledger::parse(""), None);
    }

    #[test]
    fn rows_have_what_came_of_them() {
        let it =
            row("mmap 2 30 3 0x200000 0x600000 1900000 512 75 # at 0x7f0000200000 huge 2 small 1");
        let it = it.unwrap();
        assert_eq!((it.anchor.as_str(), it.begin), ("mmap 2 30 3", 0x20_0000));
        assert_eq!(it.address, Some(0x7f00_0020_0000));
        assert_eq!((it.huge, it.small, it.confidence), (2, 1, 75));
        let heap = row("heap 0x0 0x1000 0 8 100 # at 0x0 huge 0 small 0").unwrap();
        assert_eq!((heap.anchor.as_str(), heap.address), ("heap", None));
        for other in ["mm_profile 1", "end 3", "heap 0x0 0x1000 0 8 100", ""] {
            assert_eq!(row(other), None, "{other}");
        }
    }
}
