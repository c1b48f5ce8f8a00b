// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's estimator (mm/econ of the patch queue): profiles of processes, and the decisions
//! made for them.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};

use toll_model::kernel_costs::NOT_COSTS;

use crate::{Root, proc};

/// Sysfs directory of the estimator.
pub const DIRECTORY: &str = "/sys/kernel/mm/econ";

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

/// Decisions of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// huge, large, direct, promote, demote, compact, zero, pool, swap.
    pub model: String,
    pub asked: u64,
    /// Number of approvals, their estimated cost and benefit, and the benefit of the rejected ones,
    /// ns.
    pub approved: u64,
    pub cost_ns: u64,
    pub benefit_ns: u64,
    pub refused_ns: u64,
}

/// Decisions for a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledger {
    /// off, observe, on, or default: the machine's mode.
    pub mode: String,
    pub accounts: Vec<Account>,
}

impl Ledger {
    /// Returns the ledger of a process; `None` if the kernel has no econ, there is no such process,
    /// it belongs to another user, or it has no profile.
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
        approved: number()?,
        cost_ns: number()?,
        benefit_ns: number()?,
        refused_ns: number()?,
    })
}

/// Machine-wide state of the estimator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// off, observe or on.
    pub mode: String,
    /// Whether the costs are frozen.
    pub frozen: bool,
    /// Costs by file name, ns.
    pub costs: Vec<(String, u64)>,
    pub accounts: Vec<Account>,
    /// Counters of the prezero thread by file name; empty if this kernel has none.
    pub zeroed: Vec<(String, u64)>,
}

impl Machine {
    /// Reads the state; `None` if the kernel has no econ.
    pub fn read(root: &Root) -> Option<Machine> {
        let mode = root.line(format!("{DIRECTORY}/mode"))?;
        let stats = format!("{DIRECTORY}/stats");
        let account_of =
            |model: &String| account_file(model, &root.read(format!("{stats}/{model}")).ok()?);
        let mut accounts: Vec<Account> = root.names(&stats).iter().filter_map(account_of).collect();
        accounts.sort_by_key(|account| place(&account.model));
        Some(Machine {
            mode,
            frozen: root.number(format!("{DIRECTORY}/costs/frozen")) == Some(1),
            costs: costs(root),
            accounts,
            zeroed: numbers(root, &format!("{DIRECTORY}/zeroed_blocks")),
        })
    }
}

/// Sorts in the order of `mm_ledger`; unknown models come last.
fn place(model: &str) -> usize {
    const MODELS: [&str; 9] = [
        "huge", "large", "direct", "promote", "demote", "compact", "zero", "pool", "swap",
    ];
    let known = MODELS.iter().position(|name| *name == model);
    known.unwrap_or(MODELS.len())
}

/// Returns the kernel's costs, ns; empty if it has no econ.
pub fn costs(root: &Root) -> Vec<(String, u64)> {
    let mut found = numbers(root, &format!("{DIRECTORY}/costs"));
    found.retain(|(name, _)| !NOT_COSTS.contains(&name.as_str()));
    found
}

/// Returns the files of a directory that hold a number.
fn numbers(root: &Root, directory: &str) -> Vec<(String, u64)> {
    let number = |name: String| Some((root.number(format!("{directory}/{name}"))?, name));
    let names = root.names(directory).into_iter();
    names
        .filter_map(number)
        .map(|(number, name)| (name, number))
        .collect()
}

/// Parses a file of `stats`: five lines, each a name and a number.
fn account_file(model: &str, text: &str) -> Option<Account> {
    let number = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    };
    Some(Account {
        model: model.to_owned(),
        asked: number("asked")?,
        // Kernels before the rename call it "gone".
        approved: number("approved").or_else(|| number("gone"))?,
        cost_ns: number("cost_ns")?,
        benefit_ns: number("benefit_ns")?,
        refused_ns: number("refused_ns")?,
    })
}

/// A cost as sampled by the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// Name of the cost.
    pub name: String,
    /// Median and 90th percentile of the samples, ns.
    pub median: u64,
    pub high: u64,
    pub number: u64,
}

/// Returns the kernel's own samples of each cost; empty if it has no econ.
pub fn samples(root: &Root) -> Vec<Samples> {
    let text = root.read(format!("{DIRECTORY}/costs/samples"));
    let sample = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        let numbers: Vec<u64> = rest
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [median, high, number] = numbers[..] else {
            return None;
        };
        let name = name.to_owned();
        Some(Samples {
            name,
            median,
            high,
            number,
        })
    };
    text.unwrap_or_default()
        .lines()
        .filter_map(sample)
        .collect()
}

/// Why costs were not loaded.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot be written: {error}{}", if *.is_restored { "" } else { ", nor could the previous costs be restored" })]
pub struct LoadError {
    path: String,
    error: io::Error,
    /// Whether the previous costs were restored.
    is_restored: bool,
}

/// Writes all costs or none, and freezes them if `freeze` is set.
///
/// # Errors
/// [`LoadError`] names the file.
pub fn load_costs(root: &Root, costs: &[(&str, u64)], freeze: bool) -> Result<(), LoadError> {
    // The kernel must not update costs meanwhile.
    let frozen = freeze.then_some(("frozen", 1));
    let mut written: Vec<(String, String)> = Vec::new();
    for (name, number) in frozen.into_iter().chain(costs.iter().copied()) {
        let path = format!("{DIRECTORY}/costs/{name}");
        let before = root.read(&path);
        let outcome = before.and_then(|before| {
            written.push((path.clone(), before));
            overwrite(root, &path, &number.to_string())
        });
        if let Err(error) = outcome {
            let is_restored = restore(root, &written, &path);
            return Err(LoadError {
                path,
                error,
                is_restored,
            });
        }
    }
    Ok(())
}

/// Restores the previous values in reverse order, ignoring the file that could not be written.
fn restore(root: &Root, written: &[(String, String)], failed: &str) -> bool {
    let is_lost = |(path, before): &&(String, String)| {
        overwrite(root, path, before.trim()).is_err() && path != failed
    };
    // Count failures instead of stopping at the first, so that the other files are restored.
    written.iter().rev().filter(is_lost).count() == 0
}

/// Writes an existing file.
fn overwrite(root: &Root, path: &str, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(root.path(path))?;
    // One write is one number.
    file.write_all(format!("{text}\n").as_bytes())
}

/// A process that has a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    /// Start time: distinguishes the process from a later one with the same id.
    pub started: u64,
    pub name: String,
    pub ledger: Ledger,
}

/// Returns all readable processes with a profile. Processes that end meanwhile are left out.
pub fn processes(root: &Root) -> Vec<Process> {
    let process = |pid: u32| {
        let ledger = Ledger::read(root, pid)?;
        Some(Process {
            pid,
            started: proc::stat(root, pid).ok()?.start_ticks,
            name: root.line(format!("/proc/{pid}/comm"))?,
            ledger,
        })
    };
    proc::processes(root)
        .into_iter()
        .filter_map(process)
        .collect()
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
