// SPDX-License-Identifier: MIT OR Apache-2.0
//! `largepages.txt`: decimal base addresses of 2 MiB regions, one per line. Blank lines and `#`
//! comments are allowed.

use crate::REGION;
use crate::error::FormatError;
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
    let shown: String = entry.chars().take(40).collect();
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_list_may_have_comments() {
        let text =
            "# eight hot regions\n\n  1682368888832 # 0x187b5000000\n1682368888832\n2097152\n";
        assert_eq!(parse(text).unwrap(), [2 << 20, 1682368888832]);
    }

    #[test]
    fn junk_is_named_with_its_line() {
        for (text, line) in [
            ("2097152\n0x200000\n", "line 2: \"0x200000\""),
            ("2097153\n", "line 1: 2097153 (0x200001) is not a multiple"),
            ("\n\n-2097152", "line 3"),
            ("99999999999999999999999", "line 1"),
            ("0x187b5000000\t4257", "line 1"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(line), "{error}");
        }
    }

    proptest! {
        #[test]
        fn lists_come_back(regions in prop::collection::btree_set(0u64..1 << 30, 0..50)) {
            let addresses: Vec<u64> = regions.into_iter().map(|region| region * REGION).collect();
            prop_assert_eq!(parse(&format(&addresses)).unwrap(), addresses);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,80}") {
            let _ = parse(&text);
        }
    }
}
