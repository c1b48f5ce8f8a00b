// SPDX-License-Identifier: MIT OR Apache-2.0
//! The estimator's costs: read, sampled by the kernel, and loaded.

use std::fs::OpenOptions;
use std::io::{self, Write};

use toll_model::kernel_costs::NOT_COSTS;

use super::DIRECTORY;
use crate::Root;

/// Returns the kernel's costs, ns; empty if it has no econ.
pub fn costs(root: &Root) -> Vec<(String, u64)> {
    let mut found = numbers(root, &format!("{DIRECTORY}/costs"));
    found.retain(|(name, _)| !NOT_COSTS.contains(&name.as_str()));
    found
}

/// Returns the files of a directory that hold a number.
pub(super) fn numbers(root: &Root, directory: &str) -> Vec<(String, u64)> {
    let number = |name: String| Some((root.number(format!("{directory}/{name}"))?, name));
    let names = root.names(directory).into_iter();
    names
        .filter_map(number)
        .map(|(number, name)| (name, number))
        .collect()
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
