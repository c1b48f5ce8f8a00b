// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of jobs, policies and profiles.

/// Checks names that are used as file names.
pub(super) fn bad_name(name: &str) -> Option<String> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = !name.is_empty() && name.len() < 64 && name.chars().all(is_fine);
    (!is_name).then(|| format!("{name:?}: expected lower case, digits and dashes"))
}
