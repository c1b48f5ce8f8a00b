// SPDX-License-Identifier: MIT OR Apache-2.0
//! `largepages.txt`: decimal base addresses of 2 MiB regions, one per line. Blank lines and `#`
//! comments are allowed.

use crate::REGION;
use crate::error::FormatError;
use crate::format::clip;
use crate::site::MAX_LENGTH;

const WHAT: &str = "list of large pages";

/// Parses a list and returns it sorted, without duplicates.
///
/// # Errors
/// [`FormatError`] names the first line that is not the decimal address of a region.
pub fn parse(text: &str) -> Result<Vec<u64>, FormatError> {
    let mut addresses = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        if entry.is_empty() {
            continue;
        }
        let address = parse_address(entry).map_err(|detail| FormatError::Invalid {
            what: WHAT,
            detail: format!("line {}: {detail}", number + 1),
        })?;
        addresses.push(address);
    }
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

fn parse_address(entry: &str) -> Result<u64, String> {
    let shown = clip(entry);
    if !entry.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{shown:?} is not a decimal address"));
    }
    let address = entry
        .parse::<u64>()
        .ok()
        .filter(|&address| address < MAX_LENGTH);
    match address {
        None => Err(format!("{shown} is no user address")),
        Some(address) if address % REGION != 0 => {
            Err(format!("{shown} ({address:#x}) is not a multiple of 2 MiB"))
        }
        Some(address) => Ok(address),
    }
}

/// Formats a list.
pub fn format(addresses: &[u64]) -> String {
    addresses
        .iter()
        .map(|address| format!("{address}\n"))
        .collect()
}

#[cfg(test)]
mod tests;
